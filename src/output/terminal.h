#pragma once

#include <cstddef>
#include <optional>

namespace gradflow {

/// Columns of the terminal behind the descriptor now; absent where there is none or it does not say.
std::optional<std::size_t> terminal_columns(int descriptor);

/// Columns that a table on standard output may take: what the environment variable COLUMNS says, else those of the
/// terminal, else without a limit (a file, a pipe).
std::size_t table_columns();

}  // namespace gradflow
