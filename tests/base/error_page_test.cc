/// Checks that docs/errors.md lists every error code once, in the section of its family, and no
/// other code.
#include <array>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft {
namespace {

constexpr std::array<std::pair<ErrorFamily, std::string_view>, 9> kSections{
    {{ErrorFamily::Usage, "Usage"},
     {ErrorFamily::Schedule, "Schedule"},
     {ErrorFamily::Compile, "Compile"},
     {ErrorFamily::Plan, "Plan"},
     {ErrorFamily::Transport, "Transport"},
     {ErrorFamily::Device, "Device"},
     {ErrorFamily::Worker, "Worker"},
     {ErrorFamily::Cluster, "Cluster"},
     {ErrorFamily::Internal, "Internal"}}};

std::string_view section_of(ErrorFamily family) {
  for (const auto& [listed, name] : kSections) {
    if (listed == family) {
      return name;
    }
  }
  return "";
}

/// Returns the names of the codes in their order, read from the header.
std::vector<std::string> enumerators_of_errc() {
  std::istringstream lines(tests::read_text_file(STAGECRAFT_SOURCE_DIR "/base/error.h"));
  std::vector<std::string> names;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("enum class Errc ")) {
      inside = true;
    } else if (inside && line.starts_with("}")) {
      break;
    } else if (inside && line.find("//") == std::string::npos) {
      const std::size_t begin = line.find_first_not_of(' ');
      names.push_back(line.substr(begin, line.find(',') - begin));
    }
  }
  return names;
}

/// Holds one row of a table of codes.
struct CodeRow {
  std::string section;
  std::string enumerator;
};

/// Returns the rows of the tables whose second column is `Errc`, by code.
std::map<std::string, CodeRow> rows_of_error_page() {
  std::istringstream lines(tests::read_text_file(STAGECRAFT_SOURCE_DIR "/docs/errors.md"));
  std::map<std::string, CodeRow> rows;
  std::string section;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) {
      section = line.substr(3);
    }
    if (line.starts_with("| code | `Errc` |")) {
      inside = true;
    } else if (!line.starts_with("| `")) {
      inside = inside && line.starts_with("|");
    } else if (inside) {
      std::istringstream words(line);
      std::string bar, code, enumerator;
      words >> bar >> code >> bar >> enumerator;
      CAPTURE(line);
      CHECK(rows.try_emplace(code, CodeRow{section, enumerator}).second);
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("docs/errors.md lists every error code once and no other", "[base][error][docs]") {
  const std::vector<std::string> enumerators = enumerators_of_errc();
  const std::map<std::string, CodeRow> rows = rows_of_error_page();
  REQUIRE(enumerators.size() == static_cast<std::size_t>(Errc::Internal) + 1);
  CHECK(rows.size() == enumerators.size());
  for (std::size_t i = 0; i < enumerators.size(); ++i) {
    const Errc code = static_cast<Errc>(i);
    CAPTURE(enumerators[i]);
    const auto row = rows.find("`" + std::string(to_string(code)) + "`");
    REQUIRE(row != rows.end());
    CHECK(row->second.enumerator == "`" + enumerators[i] + "`");
    CHECK(row->second.section == section_of(family(code)));
  }
}

}  // namespace stagecraft
