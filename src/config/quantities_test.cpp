#include "config/quantities.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gradflow {
namespace {

TEST(Quantities, AreThoseOfTheContract) {
  const auto in = [](QuantitySet set) {
    const auto all = measured_quantities();
    return std::count_if(all.begin(), all.end(), [&](const Quantity& q) { return q.set == set; });
  };
  EXPECT_EQ(in(QuantitySet::standard), 12);
  EXPECT_EQ(in(QuantitySet::all), 14);
  EXPECT_EQ(in(QuantitySet::on_demand), 7);
  EXPECT_EQ(find_quantity("stream_rms")->set, QuantitySet::standard);
  EXPECT_EQ(find_quantity("branch_cosine")->set, QuantitySet::all);
  EXPECT_EQ(find_quantity("jacobian")->set, QuantitySet::on_demand);
  EXPECT_EQ(find_quantity("standard"), nullptr);
}

}  // namespace
}  // namespace gradflow
