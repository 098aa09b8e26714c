#include "stagecraft/tools/doctor/report.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/doctor/talk/talk.h"

namespace stagecraft::tools {
namespace {

const char* word_of(Level level) {
  switch (level) {
    case Level::Ok:
      return "ok";
    case Level::Note:
      return "note";
    case Level::Problem:
      break;
  }
  return "problem";
}

std::string line_of_finding(const Finding& finding) {
  std::string line =
      fmt::format("  {:<8} {:<14} {}\n", word_of(finding.level), finding.check, finding.what);
  if (finding.level != Level::Ok && !finding.remedy.empty()) {
    line += fmt::format("  {:<8} {:<14} mend: {}\n", "", "", finding.remedy);
  }
  return line;
}

std::vector<std::string> hosts_of(const std::vector<Finding>& findings) {
  std::vector<std::string> hosts;
  for (const Finding& finding : findings) {
    if (std::ranges::find(hosts, finding.host) == hosts.end()) {
      hosts.push_back(finding.host);
    }
  }
  return hosts;
}

std::string sum_of(const std::vector<Finding>& findings) {
  const auto count = [&](Level level) {
    return std::ranges::count(findings, level, &Finding::level);
  };
  const auto problems = count(Level::Problem), notes = count(Level::Note);
  return fmt::format("{} problem{}, {} note{}\n",
                     problems,
                     problems == 1 ? "" : "s",
                     notes,
                     notes == 1 ? "" : "s");
}

/// Returns the names with their addresses, in a list: the names of hosts are no keys (JO-1).
Json json_of_names(const KnownNames& names) {
  Json list = Json::array();
  for (const auto& [name, addresses] : names) {
    list.push_back({{"name", name}, {"addresses", addresses}});
  }
  return list;
}

Json json_of_exam(const HostExam& exam) {
  return {{"name", exam.name},
          {"workers", exam.workers},
          {"facts", exam.facts ? Json(*exam.facts) : Json(nullptr)},
          {"address", exam.door.address},
          {"ways", exam.ways},
          {"names", json_of_names(exam.names)}};
}

}  // namespace

bool has_problem(const std::vector<Finding>& findings) {
  return std::ranges::find(findings, Level::Problem, &Finding::level) != findings.end();
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::string text;
  for (const std::string& host : hosts_of(findings)) {
    text += host + '\n';
    for (const Finding& finding : findings) {
      if (finding.host == host) {
        text += line_of_finding(finding);
      }
    }
  }
  return text + sum_of(findings);
}

std::string findings_json(const std::vector<Finding>& findings,
                          const std::vector<HostExam>& exams) {
  Json list = Json::array(), hosts = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"host", finding.host},
                    {"check", finding.check},
                    {"level", word_of(finding.level)},
                    {"what", finding.what},
                    {"mend", finding.remedy}});
  }
  for (const HostExam& exam : exams) {
    hosts.push_back(json_of_exam(exam));
  }
  return command_json("doctor",
                      {{"good", !has_problem(findings)}, {"findings", list}, {"hosts", hosts}});
}

}  // namespace stagecraft::tools
