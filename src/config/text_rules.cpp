#include "config/text_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "config/nearest.h"
#include "config/quantities.h"
#include "config/text.h"

namespace gradflow {
namespace {

std::string text_fault(std::string_view text) {
  if (text.empty()) return "is empty";
  if (first_invalid_utf8(text)) return "is not UTF-8";
  const auto control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::any_of(text.begin(), text.end(), control)) return "contains a control character";
  return "";
}

std::string name_fault(std::string_view text) {
  constexpr std::size_t longest_file_name = 255;
  if (std::string fault = text_fault(text); !fault.empty()) return fault;
  if (text.find('/') != std::string_view::npos) return "contains a slash";
  if (text == "." || text == "..") return "is no name of a folder";
  if (text.size() > longest_file_name) return fmt::format("is longer than {} bytes", longest_file_name);
  return "";
}

std::string device_fault(std::string_view text) {
  if (text == "cpu" || text == "cuda" || text == "auto") return "";
  constexpr std::string_view numbered = "cuda:";
  if (text.starts_with(numbered)) {
    const std::string_view index = text.substr(numbered.size());
    const bool is_number = !index.empty() && index.size() <= 3 &&
                           std::all_of(index.begin(), index.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (is_number && (index == "0" || index[0] != '0')) return "";
  }
  return "is no device";
}

std::string quantity_fault(std::string_view text) {
  const auto words = quantity_words();
  if (find_quantity(text) || std::find(words.begin(), words.end(), text) != words.end()) return "";
  std::vector<std::string_view> names(words.begin(), words.end());
  for (const Quantity& quantity : measured_quantities()) names.push_back(quantity.name);
  const std::string_view nearest = nearest_word(text, names);
  return fmt::format("is no quantity{}", is_near(text, nearest) ? fmt::format(" (the nearest is {})", nearest) : "");
}

}  // namespace

const TextRule name_rule{"a name without slashes, one component of a path", name_fault, "^[^/]+$"};
const TextRule path_rule{"the path of a file", text_fault};
const TextRule device_rule{"cpu, cuda, cuda:0, cuda:1, … or auto", device_fault,
                           "^(cpu|cuda|auto|cuda:(0|[1-9][0-9]{0,2}))$"};
const TextRule quantity_rule{"none, standard, all, the name of a column of layers.csv or of an on-demand quantity",
                             quantity_fault};

}  // namespace gradflow
