#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace gradflow {

/// Bytes of main memory that this process can still take: what the kernel calls available, less where a control group
/// (container, batch job) allows less. Absent where the system does not say. `root` stands before the paths that are
/// read; tests give a folder of their own.
std::optional<std::int64_t> available_memory(const std::string& root = "");

/// The most bytes of main memory that this process has held at once (peak resident set).
std::int64_t peak_memory();

/// For people, three significant digits: "512 B", "1.23 MB", "4.5 GB" (powers of 1000).
std::string bytes_in_words(double bytes);

}  // namespace gradflow
