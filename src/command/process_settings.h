#pragma once

#include "config/config.h"

namespace gradflow {

/// Sets what holds for the whole process: the heap in huge pages where the system has them on request; threads, how
/// denormal numbers are treated, full float32 on a GPU. Throws Error when the processor cannot do what is asked.
void set_up_process(const ComputeConfig& compute);

}  // namespace gradflow
