#pragma once

#include <string>
#include <string_view>

#include "config/config.h"

namespace gradflow {

/// The name of a run's folder: the keys that differ from their defaults as "depth=24_placement=post", cut at 100 bytes,
/// then "-" and 8 hexadecimal digits of the hash of the resolved configuration ("defaults-…" when nothing differs).
/// `name` and `checkpoint.*` take no part: they do not change what a run computes.
/// `files_hash` is a hash of the content of data.files; with it the same texts give the same name in any folder.
/// Without it their absolute paths are hashed. The readable part shows the names of the files without their folders.
std::string run_id(const Config& config, std::string_view files_hash = {});

}  // namespace gradflow
