#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

struct RuleFile {
  int first = 0;
  int last = 0;
  std::string text;
};

int number_at(const std::string& name, std::size_t at) {
  return std::stoi(name.substr(at, 2));
}

/// Returns the sources of rules/ named for a rule ("v30_memory.cc") or a range
/// ("v20_v23_columns.cc").
std::map<std::string, RuleFile> rule_files() {
  std::map<std::string, RuleFile> files;
  for (const fs::directory_entry& file : fs::directory_iterator("scheduler/rules")) {
    const std::string name = file.path().filename().string();
    if (name.starts_with('v') && std::isdigit(name.at(1)) != 0 && name.ends_with(".cc")) {
      const int first = number_at(name, 1);
      const bool range = name.substr(3, 2) == "_v" && name.at(7) == '_';
      std::ifstream in(file.path());
      files[name] = {
          first, range ? number_at(name, 5) : first, {std::istreambuf_iterator<char>(in), {}}};
    }
  }
  return files;
}

TEST_CASE("every rule is judged in a file that has its number in its name", "[scheduler][rules]") {
  const auto files = rule_files();
  for (int number = 1; number <= 35; ++number) {
    if (number > 12 && number < 20) {
      continue;  // there is no such rule
    }
    const std::string rule = fmt::format("V{:02}", number);
    int judging = 0;
    for (const auto& [name, file] : files) {
      const bool named = file.first <= number && number <= file.last;
      judging += named && file.text.find('"' + rule + '"') != std::string::npos ? 1 : 0;
    }
    INFO(rule);
    CHECK(judging >= 1);
  }
}

TEST_CASE("a file of rules names no rule that it does not judge", "[scheduler][rules]") {
  for (const auto& [name, file] : rule_files()) {
    INFO(name);
    CHECK(file.first <= file.last);
    for (const int number : {file.first, file.last}) {
      CHECK(file.text.find(fmt::format("\"V{:02}\"", number)) != std::string::npos);
    }
  }
}

}  // namespace
}  // namespace stagecraft
