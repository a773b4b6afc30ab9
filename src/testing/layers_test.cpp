// The rule that keeps the folders apart: a file includes its own folder and those before it in the list of
// CMakeLists.txt, and only the later folders may include LibTorch.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

/// Path relative to src/ → text.
using Files = std::map<std::string, std::string>;

struct Layers {
  std::vector<std::string> folders;  ///< lowest first; main.cpp stands above them all, testing/ beside them
  std::size_t first_with_torch = 0;
};

Layers layers_of_the_build() {
  Layers layers;
  std::istringstream words(GRADFLOW_LAYERS);
  for (std::string word; words >> word;) {
    if (word == "/")
      layers.first_with_torch = layers.folders.size();
    else
      layers.folders.push_back(word);
  }
  return layers;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool is_test(const std::string& path) { return path.ends_with("_test.cpp"); }

/// One line "FILE:LINE: what is wrong" for each include that breaks the rule.
std::vector<std::string> faults(const Files& files, const Layers& layers) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
  static const std::regex torch_header("^(ATen|torch|c10|caffe2|aten)/.*");
  const auto rank = [&](const std::string& folder) {
    const auto found = std::find(layers.folders.begin(), layers.folders.end(), folder);
    return static_cast<std::size_t>(found - layers.folders.begin());  // main.cpp and testing/: above all
  };
  std::vector<std::string> result;
  for (const auto& [path, text] : files) {
    const std::string folder = folder_of(path);
    if (!folder.empty() && folder != "testing" && rank(folder) == layers.folders.size())
      result.push_back(path + ":1: folder " + folder + "/ is not in the list of CMakeLists.txt");
    std::istringstream lines(text);
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      std::smatch match;
      if (!std::regex_search(line, match, include)) continue;
      const std::string target = match[2];
      const std::string place = path + ":" + std::to_string(number) + ": ";
      if (match[1] == "<") {
        if (rank(folder) < layers.first_with_torch && std::regex_match(target, torch_header))
          result.push_back(place + folder + "/ must build without LibTorch, but includes <" + target + ">");
        if (folder_of(target) == "CLI" && folder != "command" && path != "main.cpp")
          result.push_back(place + "only command/ and main.cpp may include <" + target + ">, which is slow to compile");
        continue;
      }
      const std::string target_folder = folder_of(target);
      if (!files.contains(target))
        result.push_back(place + "\"" + target +
                         "\" is no file of src/; write its path from there, or <> for a library");
      else if (target_folder == "testing" ? folder != "testing" && !is_test(path) : rank(target_folder) > rank(folder))
        result.push_back(place + folder + "/ must not include " + target_folder + "/");
    }
  }
  return result;
}

Files files_of(const std::filesystem::path& root) {
  Files files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    files[std::filesystem::relative(entry.path(), root).generic_string()] = text.str();
  }
  return files;
}

const Layers example{{"core", "config", "model", "command"}, 2};

TEST(Layers, EveryIncludeGoesDown) {
  const Files files = files_of("src");
  ASSERT_TRUE(files.contains("testing/layers_test.cpp")) << "tests run from the root of the checkout";
  for (const std::string& fault : faults(files, layers_of_the_build())) ADD_FAILURE() << "src/" << fault;
}

TEST(Layers, FindsAnIncludeThatGoesUp) {
  const Files files{{"core/a.h", "#pragma once\n\n#include \"config/b.h\"\n"}, {"config/b.h", ""}};
  EXPECT_EQ(faults(files, example), std::vector<std::string>{"core/a.h:3: core/ must not include config/"});
}

TEST(Layers, AllowsTheOwnFolderAndThoseBelow) {
  const Files files{{"core/a.h", ""},
                    {"model/b.h", "#include <ATen/ATen.h>\n#include \"core/a.h\"\n"},
                    {"model/c.cpp", "#include \"model/b.h\"\n#include <vector>\n"},
                    {"command/d.cpp", "#include <CLI/CLI.hpp>\n#include \"model/b.h\"\n"},
                    {"main.cpp", "#include <CLI/CLI.hpp>\n#include \"model/b.h\"\n"}};
  EXPECT_EQ(faults(files, example), std::vector<std::string>{});
}

TEST(Layers, FindsLibTorchWhereItMustNotBe) {
  const Files files{{"config/a.cpp", "#  include <c10/util/Half.h>\n"},
                    {"model/b.cpp", "#include <c10/util/Half.h>\n"}};
  EXPECT_EQ(
      faults(files, example),
      std::vector<std::string>{"config/a.cpp:1: config/ must build without LibTorch, but includes <c10/util/Half.h>"});
}

TEST(Layers, OnlyTestsUseTestingHelpers) {
  const Files files{{"testing/golden.h", ""},
                    {"core/a.cpp", "#include \"testing/golden.h\"\n"},
                    {"core/a_test.cpp", "#include \"testing/golden.h\"\n"}};
  EXPECT_EQ(faults(files, example), std::vector<std::string>{"core/a.cpp:1: core/ must not include testing/"});
}

TEST(Layers, FindsUnlistedFoldersMissingFilesAndTheSlowHeader) {
  EXPECT_EQ(faults({{"extra/a.cpp", ""}}, example).size(), 1u);
  EXPECT_EQ(faults({{"core/a.cpp", "#include \"b.h\"\n"}, {"core/b.h", ""}}, example).size(), 1u);
  EXPECT_EQ(faults({{"model/a.cpp", "#include <CLI/CLI.hpp>\n"}}, example).size(), 1u);
}

}  // namespace
