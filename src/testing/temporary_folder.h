#pragma once

// The program's own, which tests use as it is. Two classes of this name would break the rule of one definition.
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "core/temporary_folder.h"
