#include <ATen/Parallel.h>
#include <gtest/gtest.h>

namespace gradflow::testing {
namespace {

/// Tensors of tests are tiny: threads that wait for one another would take ten times as long as the work. One is also
/// what the program uses unless it is told otherwise.
class OneThread : public ::testing::Environment {
 public:
  void SetUp() override { at::set_num_threads(1); }
};

[[maybe_unused]] ::testing::Environment* const one_thread = ::testing::AddGlobalTestEnvironment(new OneThread);

}  // namespace
}  // namespace gradflow::testing
