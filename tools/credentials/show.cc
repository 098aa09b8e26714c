/// `stagecraft credentials show`
#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/credentials/commands.h"

namespace stagecraft::tools {
namespace {

using security::CertificateFacts;
using security::CredentialsReport;
using security::FileMode;
using security::MemberReport;
using security::mode_text;
using security::utc_text;

using Json = nlohmann::ordered_json;

std::string modes_text(const std::vector<FileMode>& files) {
  std::string text;
  for (const FileMode& file : files) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", file.name, mode_text(file.mode));
  }
  return text.empty() ? "none that can be read" : text;
}

/// Returns the lines after a certificate's name.
std::string facts_text(const CertificateFacts& facts) {
  return fmt::format("  valid from   {}\n  valid until  {}\n  serial       {}\n  SHA-256      {}\n",
                     utc_text(facts.valid_from),
                     utc_text(facts.valid_until),
                     facts.serial,
                     facts.fingerprint);
}

std::string problems_text(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) {
    text += fmt::format("  wrong: {}\n", problem);
  }
  return text;
}

std::string member_text(const MemberReport& member) {
  std::string text = fmt::format("\n{}", member.name);
  if (member.certificate && member.certificate->name != member.name) {
    text += fmt::format(", as {}", member.certificate->name);  // a folder may have another name
  }
  text += '\n';
  if (member.certificate) {
    text += facts_text(*member.certificate);
  }
  return text + fmt::format("  files        {}\n", modes_text(member.files)) +
         problems_text(member.problems);
}

std::string for_people(const CredentialsReport& report) {
  std::string text =
      fmt::format("cluster {}\n", report.authority ? report.authority->cluster : "without a name");
  text += "\nauthority\n";
  if (report.authority) {
    text += facts_text(*report.authority);
  }
  if (report.is_cluster) {
    text += fmt::format("  files        {}\n", modes_text(report.files));
  }
  text += problems_text(report.problems);
  for (const MemberReport& member : report.members) {
    text += member_text(member);
  }
  return text;
}

/// Returns "2026-11-22T05:38:27Z" for programs.
std::string iso_text(security::TimePoint time) {
  const std::string text = utc_text(time);
  return text.substr(0, 10) + 'T' + text.substr(11, 8) + 'Z';
}

Json json_of(const CertificateFacts& facts) {
  return {{"cluster", facts.cluster},
          {"name", facts.name},
          {"serial", facts.serial},
          {"sha256", facts.fingerprint},
          {"valid_from", iso_text(facts.valid_from)},
          {"valid_until", iso_text(facts.valid_until)}};
}

Json json_of(const std::vector<FileMode>& files) {
  Json list = Json::array();
  for (const FileMode& file : files) {
    list.push_back({{"name", file.name}, {"mode", mode_text(file.mode)}});
  }
  return list;
}

template <class T>
Json json_or_null(const std::optional<T>& value) {
  return value ? json_of(*value) : Json(nullptr);
}

std::string as_json(const CredentialsReport& report) {
  Json processes = Json::array();
  for (const MemberReport& member : report.members) {
    processes.push_back({{"name", member.name},
                         {"certificate", json_or_null(member.certificate)},
                         {"files", json_of(member.files)},
                         {"problems", member.problems}});
  }
  return command_json(
      "credentials show",
      {{"good", report.good()},
       {"cluster", report.authority ? Json(report.authority->cluster) : Json(nullptr)},
       {"authority", json_or_null(report.authority)},
       {"files", json_of(report.files)},
       {"problems", report.problems},
       {"processes", processes}});
}

}  // namespace

ExitCode show_credentials(const std::vector<std::string>& words, Console& console) {
  std::string dir;
  bool json = false;
  CLI::App app(
      "Shows the credentials of a cluster or of one process, and all faults of their files. Never "
      "shows a key.",
      "stagecraft credentials show");
  app.add_option("DIR", dir, "folder of a cluster or of one process")->required()->type_name("DIR");
  app.add_flag("--json", json, "print one JSON object");
  app.footer(
      "Exit status: 0 no faults; 1 faults; 2 wrong usage, or a folder that cannot be read.\n"
      "Example: stagecraft credentials show cluster/worker-0");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const CredentialsReport report = security::inspect_credentials(dir);
  write_output("", json ? as_json(report) : for_people(report), console);
  return report.good() ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
