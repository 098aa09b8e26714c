/// `stagecraft credentials renew`
#include <algorithm>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/nearest.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/credentials/commands.h"

namespace stagecraft::tools {
namespace {

using security::CredentialsReport;
using security::MemberReport;

constexpr const char* kRenewCommand = "stagecraft credentials renew";

struct RenewOptions {
  std::string dir, member;
  int days = 7;
  bool add = false;
};

void add_renew_options(CLI::App& app, RenewOptions& o) {
  app.add_option("DIR", o.dir, "folder of the cluster, with ca-key.pem")
      ->required()
      ->type_name("DIR");
  app.add_option("NAME", o.member, "name of the process: driver, worker-0, worker-1 ...")
      ->required()
      ->type_name("NAME");
  app.add_option("--valid-days", o.days, "days for which the certificate is valid [7]")
      ->check(whole_number(1, 36500))
      ->type_name("DAYS");
  app.add_flag("--add", o.add, "add a process that has no credentials yet");
}

const MemberReport* find_member(const CredentialsReport& report, const std::string& name) {
  const auto found = std::ranges::find(report.members, name, &MemberReport::name);
  return found == report.members.end() ? nullptr : &*found;
}

/// Requires --add for a new name and none for an existing one, so that a typo makes nothing.
void check_member(const RenewOptions& o) {
  const CredentialsReport report = security::inspect_credentials(o.dir);
  const bool is_there = find_member(report, o.member) != nullptr;
  if (is_there && o.add) {
    wrong_usage(kRenewCommand,
                fmt::format("'{}' has credentials of '{}' already; leave out --add to renew its "
                            "certificate",
                            o.dir,
                            o.member));
  }
  if (!is_there && !o.add) {
    std::vector<std::string> names;
    for (const MemberReport& member : report.members) {
      names.push_back(member.name);
    }
    wrong_usage(kRenewCommand,
                fmt::format("'{}' has no credentials of '{}'; {}--add makes them",
                            o.dir,
                            o.member,
                            did_you_mean(o.member, names)));
  }
}

std::string renewed_text(const RenewOptions& o) {
  const CredentialsReport report = security::inspect_credentials(o.dir);
  const MemberReport& member = *find_member(report, o.member);
  return fmt::format("{} '{}', valid until {}\ncopy {} to its host\n",
                     o.add ? "added" : "renewed",
                     member.folder,
                     security::utc_text(member.certificate->valid_until),
                     o.add ? "the folder" : "its certificate.pem");
}

}  // namespace

ExitCode renew_credentials(const std::vector<std::string>& words, Console& console) {
  RenewOptions options;
  CLI::App app(
      "Makes a new certificate for a process whose old one has expired or will expire soon. The "
      "key stays the same; for a new key, remove the folder of the process and add it again "
      "(--add).",
      kRenewCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Exit status: 0 renewed or added; 2 wrong usage, or a folder that cannot be read or "
      "written.\n"
      "Example: stagecraft credentials renew cluster worker-3");
  add_renew_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  check_member(options);
  issue_member(options.dir, options.member, std::chrono::hours(24 * options.days));
  write_output("", renewed_text(options), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
