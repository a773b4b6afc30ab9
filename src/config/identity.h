#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"

namespace gradflow {

/// The name of a run's folder: the keys that differ from their defaults as "placement=post_depth=24", cut at 100 bytes,
/// then "-" and 8 hexadecimal digits of the hash of the resolved configuration ("defaults-…" when nothing differs).
/// First come the keys that studies vary (placement, depth, learning rate, warm-up, seed, …), then the others in their
/// usual order: what tells the runs of a grid apart is not cut off, whichever command makes the folder.
/// `name` and `checkpoint.*` take no part: they do not change what a run computes.
/// `files_hash` is a hash of the content of data.files; with it the same texts give the same name in any folder.
/// Without it their absolute paths are hashed. The readable part shows the names of the files without their folders.
std::string run_id(const Config& config, std::string_view files_hash = {});

/// The 64-bit hash of all that makes a run what it is, of which `run_id` shows a part. Equal for runs that are equal.
std::uint64_t run_hash(const Config& config, std::string_view files_hash = {});

/// The keys that stand first in `run_id`.
std::span<const std::string_view> leading_keys();

}  // namespace gradflow
