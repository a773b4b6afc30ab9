#include "core/temporary_folder.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/files.h"

namespace gradflow {

TemporaryFolder::TemporaryFolder() {
  const char* named = std::getenv("TMPDIR");
  const std::string parent = named != nullptr && *named != '\0' ? named : "/tmp";
  path_ = parent + "/gradflow-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) throw file_error(parent, "cannot hold a temporary folder", errno);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace gradflow
