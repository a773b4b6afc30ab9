#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "claims/claim.h"
#include "claims/outcome.h"

namespace gradflow {

/// The numbers of the checks of these claims, one for each seed of a claim, in the claims' order; nothing for a claim
/// with runs. Equal checks are made once. They are made in `jobs` processes (0: one a core) of one thread each, so that
/// `jobs` does not change a bit. Throws Error with Exit::interrupted soon after a signal. Call while this process has a
/// single thread.
std::vector<std::vector<CheckNumber>> run_checks(std::span<const Claim> claims, std::int64_t jobs);

}  // namespace gradflow
