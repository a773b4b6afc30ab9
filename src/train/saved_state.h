#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace gradflow {

/// How far a file of the run folder had been written at a checkpoint. What stands behind it is cut off.
struct SavedFile {
  std::uint64_t length = 0;  ///< bytes
  /// What a run with more steps goes on from instead: the last step writes rows that it would not have written, or
  /// would have written otherwise, had it not been the last.
  std::uint64_t longer_run_length = 0;
  std::string longer_run_text = {};  ///< behind that length

  /// Bytes that a run goes on behind; `ends` where its last step is that of the checkpoint.
  std::uint64_t length_for(bool ends) const { return ends ? length : longer_run_length; }
};

/// What observers remember between two steps, for a checkpoint. Everything is exact to the bit.
struct SavedState {
  std::map<std::string, std::vector<double>> rows;  ///< by observer (core/number_row.h)
  std::map<std::string, SavedFile> files;           ///< by name in the run folder

  /// Throws std::range_error when there is none.
  const std::vector<double>& row(const std::string& name) const {
    const auto found = rows.find(name);
    if (found == rows.end()) throw std::range_error("nothing is kept of " + name);
    return found->second;
  }
  const SavedFile& file(const std::string& name) const {
    const auto found = files.find(name);
    if (found == files.end()) throw std::range_error("nothing is kept of " + name);
    return found->second;
  }
};

}  // namespace gradflow
