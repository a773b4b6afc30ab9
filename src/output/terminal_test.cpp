#include "output/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace gradflow {
namespace {

TEST(TableColumns, FollowTheEnvironment) {
  ASSERT_EQ(setenv("COLUMNS", "72", 1), 0);
  EXPECT_EQ(table_columns(), 72u);
  for (const char* nonsense : {"", "0", "-5", "wide"}) {
    ASSERT_EQ(setenv("COLUMNS", nonsense, 1), 0);
    EXPECT_EQ(table_columns(), terminal_columns(1).value_or(std::numeric_limits<std::size_t>::max())) << nonsense;
  }
  ASSERT_EQ(unsetenv("COLUMNS"), 0);
}

TEST(TerminalColumns, AreUnknownWhereThereIsNoTerminal) { EXPECT_EQ(terminal_columns(-1), std::nullopt); }

}  // namespace
}  // namespace gradflow
