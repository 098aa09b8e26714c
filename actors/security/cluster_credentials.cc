#include "stagecraft/actors/security/cluster_credentials.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/security/authority.h"
#include "stagecraft/actors/security/certificate_parts.h"
#include "stagecraft/actors/security/member_folder.h"
#include "stagecraft/actors/security/new_folder.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace security {
namespace {

using std::chrono::seconds;

constexpr int kMostMembers = 65536;
constexpr std::size_t kLongestName = 64;  // limit of X.509, for both parts of a subject
constexpr seconds kLongest = std::chrono::hours(24 * 365 * 100);
constexpr seconds kClocksDisagree = std::chrono::minutes(5);
constexpr mode_t kPublic = 0644;
constexpr mode_t kSecret = 0600;

void check_name(const char* what, const std::string& name) {
  const auto is_plain = [](unsigned char c) {
    return (std::isalnum(c) != 0 && c < 0x80) || c == '.' || c == '_' || c == '-';
  };
  if (name.empty() || name.size() > kLongestName || name.front() == '.' || name.front() == '-' ||
      !std::ranges::all_of(name, is_plain)) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected the name of a {} of 1 to {} letters, digits, '.', '_' and "
                            "'-', the first a letter or digit, found '{}'; choose another",
                            what,
                            kLongestName,
                            name));
  }
}

void check_validity_time(seconds valid_for) {
  if (valid_for < seconds(1) || valid_for > kLongest) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected certificates to be valid for 1 second to 100 years, found {} "
                            "seconds; a few days are enough, as they can be renewed",
                            valid_for.count()));
  }
}

void check_request(const CredentialsRequest& request) {
  if (request.members < 1 || request.members > kMostMembers) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected credentials for 1 to {} workers, found {}; others can be "
                            "added later with stagecraft credentials renew --add",
                            kMostMembers,
                            request.members));
  }
  check_validity_time(request.valid_for);
  if (!request.cluster.empty()) {
    check_name("cluster", request.cluster);
  }
}

std::string random_cluster() {
  std::random_device random;
  return fmt::format("cluster-{:08x}", random());
}

/// Writes a member's three files into its folder `name` of `folder`, or into `folder` itself.
void write_member(NewFolder& folder,
                  const std::string& name,
                  const Authority& authority,
                  const CertificateTerms& terms) {
  const std::string prefix = name.empty() ? "" : name + "/";
  const PrivateKey key = new_key();
  folder.write(prefix + kAuthorityFile, to_pem(authority.certificate), kPublic);
  folder.write(prefix + kCertificateFile, to_pem(issue(authority, key, terms)), kPublic);
  folder.write(prefix + kKeyFile, to_pem(key).text(), kSecret);
}

Authority load_authority(const std::string& dir) {
  (void)find_folder(dir);
  const std::string certificate_path = dir + "/" + kAuthorityFile;
  const std::string key_path = dir + "/" + kAuthorityKeyFile;
  if (!exists(key_path)) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' does not exist, and no certificate can be made without the "
                            "authority's key; restore it, or make a new cluster with stagecraft "
                            "credentials make DIR",
                            key_path));
  }
  require_own_folder(dir);
  Authority authority{read_certificate(dir, kAuthorityFile), read_key(dir, kAuthorityKeyFile)};
  require_pair(certificate_path, authority.certificate, key_path, authority.key);
  require_valid_authority(certificate_path, facts_of(authority.certificate));
  return authority;
}

/// Checks that a member's folder can be renewed: it is of this cluster, and has a key to keep.
/// Returns the key.
PrivateKey kept_key(const std::string& folder, const Authority& authority) {
  require_own_folder(folder);
  if (facts_of(read_certificate(folder, kAuthorityFile)).fingerprint !=
      facts_of(authority.certificate).fingerprint) {
    throw Error(Errc::UsageFile,
                fmt::format("'{}' trusts another authority than this cluster's; remove the folder, "
                            "so that a new one is made",
                            folder));
  }
  return read_key(folder, kKeyFile);
}

/// Writes all files but the authority's key. Returns the authority.
Authority write_cluster(NewFolder& folder, const CredentialsRequest& request) {
  CertificateTerms terms{
      .cluster = request.cluster.empty() ? random_cluster() : request.cluster,
      .name = "authority",
      .valid_from = request.starts - kClocksDisagree,
      .valid_until = request.starts + std::max(request.valid_for, request.authority_valid_for)};
  Authority authority = new_authority(terms);
  folder.write(kAuthorityFile, to_pem(authority.certificate), kPublic);
  terms.valid_until = request.starts + request.valid_for;
  for (int worker = -1; worker < request.members; ++worker) {
    terms.name = worker < 0 ? kDriverMember : worker_name(worker);
    folder.make_folder(terms.name);
    write_member(folder, terms.name, authority, terms);
  }
  return authority;
}

/// Makes the folder of a cluster. Returns its authority, whose key is in the folder if `keeps_key`.
Authority make_cluster(const std::string& dir, const CredentialsRequest& request, bool keeps_key) {
  check_request(request);
  if (dir.empty()) {
    throw Error(Errc::UsageArgument,
                "expected the name of a new folder, found an empty one; name the folder to make");
  }
  NewFolder folder(dir, request.durable);
  Authority authority = write_cluster(folder, request);
  if (keeps_key) {
    folder.write(kAuthorityKeyFile, to_pem(authority.key).text(), kSecret);
  }
  folder.publish();
  return authority;
}

/// Makes or renews the member's folder in `dir`. The certificate ends with the authority at the
/// latest.
void issue_into(const std::string& dir,
                const std::string& member,
                const Authority& authority,
                seconds valid_for,
                TimePoint starts) {
  const std::string folder = without_slashes(dir) + "/" + member;
  const CertificateFacts issuer = facts_of(authority.certificate);
  const CertificateTerms terms{.cluster = issuer.cluster,
                               .name = member,
                               .valid_from = starts - kClocksDisagree,
                               .valid_until = std::min(starts + valid_for, issuer.valid_until)};
  if (exists(folder)) {
    const Certificate renewed = issue(authority, kept_key(folder, authority), terms);
    replace_file(folder + "/" + kCertificateFile, to_pem(renewed), kPublic);
    return;
  }
  NewFolder made(folder);
  write_member(made, "", authority, terms);
  made.publish();
}

}  // namespace
}  // namespace security

void make_credentials(const std::string& dir, const CredentialsRequest& request) {
  security::make_cluster(dir, request, /*keeps_key=*/true);
}

MemberIssuer::MemberIssuer(std::string dir, const CredentialsRequest& request)
    : dir_(std::move(dir)),
      authority_(std::make_unique<const security::Authority>(
          security::make_cluster(dir_, request, /*keeps_key=*/false))) {}

MemberIssuer::~MemberIssuer() = default;
MemberIssuer::MemberIssuer(MemberIssuer&&) noexcept = default;
MemberIssuer& MemberIssuer::operator=(MemberIssuer&&) noexcept = default;

void MemberIssuer::issue(const std::string& member, std::chrono::seconds valid_for) const {
  security::check_name("process", member);
  security::check_validity_time(valid_for);
  security::issue_into(dir_, member, *authority_, valid_for, std::chrono::system_clock::now());
}

void issue_member(const std::string& dir,
                  const std::string& member,
                  std::chrono::seconds valid_for,
                  std::chrono::system_clock::time_point starts) {
  security::check_name("process", member);
  security::check_validity_time(valid_for);
  security::issue_into(dir, member, security::load_authority(dir), valid_for, starts);
}

std::string worker_name(int worker) {
  return fmt::format("worker-{}", worker);
}

std::optional<int> worker_number(const std::string& name) {
  constexpr std::string_view kBegin = "worker-";
  int number = -1;
  if (name.starts_with(kBegin)) {
    std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), number);
  }
  // "worker-03" and "worker-3b" are other names.
  return number >= 0 && name == worker_name(number) ? std::optional(number) : std::nullopt;
}

}  // namespace stagecraft
