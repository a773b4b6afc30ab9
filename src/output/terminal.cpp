#include "output/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>

#include "core/numbers.h"

namespace gradflow {

std::optional<std::size_t> terminal_columns(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return std::nullopt;
  return size.ws_col;
}

std::size_t table_columns() {
  if (const char* said = std::getenv("COLUMNS"))
    if (const auto columns = parse_integer(said); columns && *columns > 0) return static_cast<std::size_t>(*columns);
  return terminal_columns(STDOUT_FILENO).value_or(std::numeric_limits<std::size_t>::max());
}

}  // namespace gradflow
