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

TEST(Quantities, WordsStandForSets) {
  using Names = std::set<std::string_view>;
  const auto asked = [](std::vector<std::string> words) { return quantities_asked_for(words); };
  EXPECT_EQ(asked({"none"}), Names{});
  EXPECT_EQ(asked({"standard"}).size(), 12u);
  EXPECT_EQ(asked({"all"}).size(), 26u);  // what needs a pass of its own is asked for by name
  EXPECT_EQ(asked({"none", "snr", "stream_rms"}), (Names{"snr", "stream_rms"}));
  EXPECT_EQ(on_demand_among(asked({"all", "snr", "cka"})), (Names{"snr", "cka"}));
  EXPECT_TRUE(look_inside(std::vector<std::string>{"all"}));
  EXPECT_FALSE(look_inside(std::vector<std::string>{"standard", "branch_cosine", "jacobian"}));
}

TEST(Quantities, OnDemandAreExplained) {
  for (const Quantity& quantity : measured_quantities())
    EXPECT_EQ(quantity.meaning.empty(), quantity.set != QuantitySet::on_demand) << quantity.name;
  EXPECT_NE(on_demand_table().find("| `cka` | linear CKA"), std::string::npos);
}

}  // namespace
}  // namespace gradflow
