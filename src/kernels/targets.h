#pragma once

// Included before any header of Highway by every file that is compiled once for each instruction set.

// The scalar level too: it is the same code, one lane wide, and the tests run it as the others.
#define HWY_COMPILE_ALL_ATTAINABLE
// Vectors whose length is known only when the program runs cannot be held in arrays of accumulators (SVE, RISC-V), and
// SSSE3 adds nothing to SSE4 here.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
