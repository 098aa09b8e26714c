#include "stagecraft/actors/security/credentials_report.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::security {
namespace {

namespace fs = std::filesystem;

MemberReport report_of(const fs::path& folder, MemberFolder found) {
  return {.name = folder.filename().string(),
          .folder = folder.string(),
          .certificate = std::move(found.certificate),
          .files = std::move(found.files),
          .problems = std::move(found.problems)};
}

/// Sorts the driver first, then shorter names before longer ones: worker-2 before worker-10.
auto order_of(const MemberReport& member) {
  return std::tuple(member.name != "driver", member.name.size(), member.name);
}

template <class Check>
void attempt(CredentialsReport& report, Check&& check) {
  try {
    check();
  } catch (const Error& error) {
    if (error.code() != Errc::UsageFile) {
      throw;
    }
    report.problems.push_back(error.message());
  }
}

void report_authority(CredentialsReport& report, const std::string& dir) {
  Certificate certificate;
  attempt(report, [&] {
    certificate = read_certificate(dir, kAuthorityFile, &report.files);
    report.authority = facts_of(certificate);
    require_valid_authority(dir + "/" + kAuthorityFile, *report.authority);
  });
  if (exists(dir + "/" + kAuthorityKeyFile)) {
    attempt(report, [&] {
      const PrivateKey key = read_key(dir, kAuthorityKeyFile, &report.files);
      if (certificate != nullptr) {
        require_pair(dir + "/" + kAuthorityFile, certificate, dir + "/" + kAuthorityKeyFile, key);
      }
    });
  }
}

/// A member that trusts another authority can be good by itself, but could never talk to the
/// others.
void check_cluster(MemberFolder& member, const std::string& folder, const CertificateFacts& ours) {
  if (member.authority && member.authority->fingerprint != ours.fingerprint) {
    member.problems.push_back(
        fmt::format("'{}' trusts another authority (SHA-256 {}) than this cluster's; remove the "
                    "folder and make it again with stagecraft credentials renew --add",
                    folder,
                    member.authority->fingerprint));
  }
}

CredentialsReport report_cluster(const std::string& dir) {
  CredentialsReport report{.is_cluster = true};
  attempt(report, [&] { require_own_folder(dir); });
  report_authority(report, dir);
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(dir, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(error) || name.starts_with('.')) {
      continue;
    }
    const std::string folder = entry.path().string();
    MemberFolder member = examine_member(folder);
    if (report.authority) {
      check_cluster(member, folder, *report.authority);
    }
    report.members.push_back(report_of(folder, std::move(member)));
  }
  std::ranges::sort(report.members, {}, &order_of);
  if (report.members.empty()) {
    report.problems.push_back(
        fmt::format("'{}' contains no folder of a driver or worker; stagecraft credentials renew "
                    "--add makes one",
                    dir));
  }
  return report;
}

}  // namespace

bool CredentialsReport::good() const {
  return problems.empty() && std::ranges::all_of(members, [](const MemberReport& member) {
           return member.problems.empty();
         });
}

CredentialsReport inspect_credentials(const std::string& dir) {
  const std::string folder = without_slashes(dir);
  (void)find_folder(folder);
  if (is_cluster_folder(folder)) {
    return report_cluster(folder);
  }
  bool any = false;
  for (const char* const name : {kAuthorityFile, kCertificateFile, kKeyFile}) {
    any = any || exists(folder + "/" + name);
  }
  if (!any) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' contains no credentials: expected the folder that stagecraft "
                            "credentials make made, or the folder of a process in it; name one of "
                            "these",
                            folder));
  }
  CredentialsReport report;
  MemberFolder member = examine_member(folder);
  report.authority = member.authority;
  std::error_code error;
  report.members.push_back(report_of(fs::weakly_canonical(folder, error), std::move(member)));
  return report;
}

}  // namespace stagecraft::security
