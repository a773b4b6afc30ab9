#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "claims/claim.h"
#include "config/text.h"
#include "core/error.h"

namespace gradflow {
namespace {

namespace fs = std::filesystem;

/// Whether the positions of a conflict know of one another.
class ConflictCheck {
 public:
  ConflictCheck(std::span<const Claim> claims, ClaimLength length) : length_(length) {
    for (const Claim& claim : claims) known_[claim.path] = &claim;
  }

  std::vector<std::string> faults(const Claim& claim) {
    std::vector<std::string> lines;
    for (const std::string& id : claim.conflict.with) {
      const std::string fault = fault_of(claim, id);
      if (!fault.empty())
        lines.push_back(fmt::format("{}:{}: conflict.with: {}", shown_path(claim.path), claim.conflict.line, fault));
    }
    return lines;
  }

 private:
  std::string fault_of(const Claim& claim, const std::string& id) {
    const fs::path folder = fs::path(claim.path).parent_path();
    const std::string path = (folder / (id + ".json")).string();
    if (std::error_code error; !fs::is_regular_file(path, error)) return no_claim(folder, id);
    const Claim* other = loaded(path);
    if (other == nullptr) return fmt::format("{} has faults of its own; gradflow claims show {} names them", id, path);
    if (other->conflict.about != claim.conflict.about)
      return fmt::format("{} is about {}; write the same \"about\" in both files", id,
                         other->conflict.about.empty() ? "no conflict" : in_quotes(other->conflict.about));
    const std::vector<std::string>& back = other->conflict.with;
    if (std::find(back.begin(), back.end(), claim.id) == back.end())
      return fmt::format("{} does not name {} in turn; add it there", id, claim.id);
    return "";
  }

  static std::string no_claim(const fs::path& folder, const std::string& id) {
    std::vector<std::string> names;
    for (const std::string& file : claim_files(folder.empty() ? "." : folder.string()))
      names.push_back(fs::path(file).stem().string());
    const std::vector<std::string_view> words(names.begin(), names.end());
    return fmt::format("no claim beside this one is called {}; {}", in_quotes(id), did_you_mean_word(id, words));
  }

  const Claim* loaded(const std::string& path) {
    const auto found = known_.find(path);
    if (found != known_.end()) return found->second;
    try {
      own_.push_back(std::make_unique<Claim>(load_claim(path, length_)));
      return known_[path] = own_.back().get();
    } catch (const Error&) {
      return known_[path] = nullptr;
    }
  }

  ClaimLength length_;
  std::map<std::string, const Claim*, std::less<>> known_;
  std::vector<std::unique_ptr<Claim>> own_;
};

}  // namespace

std::vector<Claim> load_claims(std::span<const std::string> files, ClaimLength length) {
  std::vector<Claim> claims;
  std::vector<std::string> faults;
  const auto add = [&](const std::vector<std::string>& lines) {
    faults.insert(faults.end(), lines.begin(), lines.end());
  };
  for (const std::string& file : files) {
    try {
      claims.push_back(load_claim(file, length));
    } catch (const Error& error) {
      add(error.lines());
    }
  }
  ConflictCheck check(claims, length);
  for (const Claim& claim : claims) add(check.faults(claim));
  if (!faults.empty()) throw Error(std::move(faults));
  return claims;
}

}  // namespace gradflow
