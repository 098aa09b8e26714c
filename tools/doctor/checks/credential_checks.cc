#include "stagecraft/tools/doctor/checks/credential_checks.h"

#include <chrono>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

using security::MemberReport;
using security::utc_text;

constexpr const char* kCredentials = "credentials";
constexpr std::chrono::hours kSoon{24};  // a run of a day would outlast the certificate

std::string renew_text(const std::string& dir, const std::string& member) {
  return fmt::format(
      "stagecraft credentials renew {} {}, and copy its certificate.pem to its host", dir, member);
}

Finding member_finding(const MemberReport& member,
                       const std::string& renew,
                       security::TimePoint now) {
  const security::TimePoint end = member.certificate->valid_until;
  const bool soon = end - now < kSoon;
  return {kCredentials,
          member.name,
          soon ? Level::Note : Level::Ok,
          fmt::format("valid until {}{}", utc_text(end), soon ? ", which is soon" : ""),
          soon ? renew : ""};
}

}  // namespace

std::vector<Finding> check_credentials(const security::CredentialsReport& report,
                                       const std::string& dir,
                                       security::TimePoint now) {
  std::vector<Finding> findings;
  for (const std::string& problem : report.problems) {
    findings.push_back(
        {kCredentials,
         "authority",
         Level::Problem,
         problem,
         "what the message says; or make a new cluster: stagecraft credentials make"});
  }
  for (const MemberReport& member : report.members) {
    // A single member's folder does not name the folder of its cluster.
    const std::string renew = renew_text(report.is_cluster ? dir : "DIR", member.name);
    for (const std::string& problem : member.problems) {
      findings.push_back({kCredentials, member.name, Level::Problem, problem, renew});
    }
    if (member.problems.empty() && member.certificate) {
      findings.push_back(member_finding(member, renew, now));
    }
  }
  return findings;
}

}  // namespace stagecraft::tools
