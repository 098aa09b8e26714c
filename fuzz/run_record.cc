/// Folders of `train --run-dir`, as a stranger may send them: the doctor reports on any record, and
/// no text of it changes a terminal or says more to a shell than the words of a command. What
/// follows a null byte is the log and the table of metrics.
#include "stagecraft/tools/run_record/run_record.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/printable.h"
#include "stagecraft/fuzz/fuzzed_folder.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"
#include "stagecraft/tools/doctor/run/run_diagnosis.h"
#include "stagecraft/tools/doctor/run/run_report.h"

namespace sc = stagecraft;

namespace {

/// InFolder makes a folder the working one, so that relative paths of a record lead into it.
class InFolder {
 public:
  explicit InFolder(const std::string& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }

 private:
  const std::filesystem::path before_;
};

/// Returns a line of a shell without its quoted parts.
std::string unquoted(std::string_view line) {
  std::string rest;
  bool is_quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\'') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && line.substr(i, 2) == "\\'") {
      ++i;
    } else if (!is_quoted) {
      rest += line[i];
    }
  }
  sc::fuzz::require(!is_quoted, "a command ends its quotes");
  return rest;
}

void judge_command(std::string_view line) {
  sc::fuzz::require(line.starts_with("cd "), "a command begins in the folder of its start");
  const std::string rest = unquoted(line);
  sc::fuzz::require(rest.find_first_of(";|<>()$`\\\"\n#*?[]~{}!") == std::string::npos,
                    "a shell finds nothing to do in the words of a command");
  sc::fuzz::require(std::ranges::count(rest, '&') == 2, "a command is one after its cd");
}

void judge_record(const sc::tools::RunRecord& record) {
  sc::fuzz::require(record.damaged + static_cast<int>(record.events.size()) <= record.lines,
                    "a line is an event at most once");
  for (const nlohmann::ordered_json& event : record.events) {
    sc::fuzz::require(event.at("event").is_string(), "an event has its name");
  }
}

void judge_report(const sc::tools::RunDiagnosis& run) {
  const std::string text = sc::tools::run_report_text(run);
  sc::fuzz::require(sc::printable(text, "\n") == text, "a report does not change the terminal");
  const std::string json = sc::tools::run_report_json(run);
  sc::fuzz::require(sc::printable(json, "\n") == json, "nor does its JSON");
  sc::fuzz::require(json.find('\n') == json.size() - 1, "the JSON is one line");
  sc::fuzz::require(nlohmann::json::parse(json).at("starts") == run.starts, "the JSON is read");
  judge_command(run.go_on);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sc::fuzz::FuzzedFolder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  const std::string_view beside = bytes.substr(std::min(end + 1, size));
  folder.clear();
  folder.write("record.jsonl", bytes.substr(0, end));
  folder.write("worker.log", beside);
  folder.write("metrics.csv", beside);
  const InFolder here(folder.path());
  try {
    judge_record(sc::tools::read_run_record("."));
    judge_report(sc::tools::diagnose_run("."));
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::UsageFile, "a record is refused as such");
  }
  return 0;
}
