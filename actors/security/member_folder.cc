#include "stagecraft/actors/security/member_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include <fmt/format.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "stagecraft/base/error.h"

namespace stagecraft::security {
namespace {

constexpr mode_t kOfOthers = 0077;
constexpr mode_t kReadableByGroup = 0040;
constexpr mode_t kWritableByOthers = 0022;
constexpr int kStrength = 2;  // OpenSSL's level of 112 bits, which Debian requires for TLS

[[noreturn]] void unusable(const std::string& message) {
  throw Error(Errc::UsageFile, message);
}

/// Checks the owner of a file in a folder to which all may write and that the sticky bit protects,
/// as Kubernetes mounts secrets. Only the owner can change files there: that must be us, or root.
void check_owner(const std::string& dir, const std::string& path, const SmallFile& file) {
  const bool shared = (find_folder(dir).mode & kWritableByOthers) != 0;
  if (shared && file.owner != geteuid() && file.owner != 0) {
    unusable(
        fmt::format("'{}' belongs to user {}, in a folder that others can write to; put the "
                    "credentials into a folder of user {} with mode 0700",
                    path,
                    file.owner,
                    geteuid()));
  }
}

/// Returns the mode bits that a key must not have. Root may lend its key by a group to a process
/// that is not root, as Kubernetes lends a secret (fsGroup). Source: PostgreSQL, which judges the
/// key of its server in this way.
mode_t forbidden_to_others(const SmallFile& key) {
  const bool is_lent = key.owner == 0 && geteuid() != 0;
  return is_lent ? kOfOthers & ~kReadableByGroup : kOfOthers;
}

/// Checks what holds for each of the files.
void admit(const std::string& dir,
           const std::string& name,
           const SmallFile& file,
           std::vector<FileMode>* modes) {
  if (modes != nullptr) {
    modes->push_back({name, file.mode});
  }
  check_owner(dir, dir + "/" + name, file);
}

/// Checks that `path` has not expired and does not begin later. `renewal`: the advice.
void check_validity(const std::string& path,
                    const CertificateFacts& facts,
                    const std::string& renewal) {
  const TimePoint now = std::chrono::system_clock::now();
  if (now > facts.valid_until) {
    unusable(
        fmt::format("'{}' has expired: it was valid until {}, and the clock of this host says "
                    "{}; if the clock is right, {}",
                    path,
                    utc_text(facts.valid_until),
                    utc_text(now),
                    renewal));
  }
  if (now < facts.valid_from) {
    unusable(
        fmt::format("'{}' is not valid yet: it is valid from {}, and the clock of this host "
                    "says {}; correct the clock of this host or of the host that made it, or, "
                    "if both are right, wait",
                    path,
                    utc_text(facts.valid_from),
                    utc_text(now)));
  }
}

bool signed_by(const Certificate& certificate, const Certificate& authority) {
  const bool named = X509_NAME_cmp(X509_get_issuer_name(certificate.get()),
                                   X509_get_subject_name(authority.get())) == 0;
  const bool is_signed =
      named && X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  if (!is_signed) {
    (void)openssl_reason();
  }
  return is_signed;
}

/// Returns why TLS would refuse, or nullptr. Validity was checked before.
const char* tls_refusal(const Certificate& certificate, const Certificate& authority, int purpose) {
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(),
                                                                      &X509_STORE_free);
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(
      X509_STORE_CTX_new(), &X509_STORE_CTX_free);
  require_openssl(
      store != nullptr && context != nullptr &&
          X509_STORE_add_cert(store.get(), authority.get()) == 1 &&
          X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr) == 1 &&
          X509_STORE_CTX_set_purpose(context.get(), purpose) == 1,
      "a check of certificates");
  X509_VERIFY_PARAM* const rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_auth_level(rules, kStrength);
  X509_VERIFY_PARAM_set_flags(rules, X509_V_FLAG_NO_CHECK_TIME);
  if (X509_verify_cert(context.get()) == 1) {
    return nullptr;
  }
  (void)openssl_reason();
  return X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get()));
}

void check_chain(const MemberFolder& member,
                 const Certificate& certificate,
                 const Certificate& authority) {
  const std::string& path = member.paths.certificate;
  if (!signed_by(certificate, authority)) {
    unusable(
        fmt::format("'{}' is foreign: the authority of '{}' (cluster '{}', SHA-256 {}) did not "
                    "sign it; copy the whole folder of the process from one cluster's credentials",
                    path,
                    member.paths.authority,
                    member.authority->cluster,
                    member.authority->fingerprint));
  }
  const Role role = member.certificate->role;
  if (role != Role::Driver && role != Role::Worker) {
    unusable(
        fmt::format("'{}' does not say whether its holder is the driver or a worker; make another "
                    "with stagecraft credentials renew",
                    path));
  }
  const bool is_driver = role == Role::Driver;
  if (const char* const refusal = tls_refusal(
          certificate, authority, is_driver ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT)) {
    unusable(
        fmt::format("TLS would refuse '{}' as the certificate of a {} ({}); make another with "
                    "stagecraft credentials renew",
                    path,
                    is_driver ? "driver" : "worker",
                    refusal));
  }
}

/// Runs one check of a member. Records an error as a problem, so that the next check still runs.
template <class Check>
auto attempt(MemberFolder& member, Check&& check) {
  using Result = decltype(check());
  try {
    return check();
  } catch (const Error& error) {
    if (error.code() != Errc::UsageFile) {
      throw;
    }
    member.problems.push_back(error.message());
  }
  if constexpr (!std::is_void_v<Result>) {
    return Result{};
  }
}

void check_files(MemberFolder& member, const std::string& dir) {
  const Certificate authority =
      attempt(member, [&] { return read_certificate(dir, kAuthorityFile, &member.files); });
  const Certificate certificate =
      attempt(member, [&] { return read_certificate(dir, kCertificateFile, &member.files); });
  const PrivateKey key = attempt(member, [&] { return read_key(dir, kKeyFile, &member.files); });
  if (authority != nullptr) {
    member.authority = facts_of(authority);
    attempt(member, [&] { require_valid_authority(member.paths.authority, *member.authority); });
  }
  if (certificate == nullptr) {
    return;
  }
  member.certificate = facts_of(certificate);
  attempt(member, [&] {
    check_validity(
        member.paths.certificate,
        *member.certificate,
        fmt::format("make another with stagecraft credentials renew DIR {}, where DIR is the "
                    "cluster's folder, and copy it here",
                    member.certificate->name));
  });
  if (key != nullptr) {
    attempt(member,
            [&] { require_pair(member.paths.certificate, certificate, member.paths.key, key); });
  }
  if (authority != nullptr) {
    attempt(member, [&] { check_chain(member, certificate, authority); });
  }
}

}  // namespace

MemberFolder examine_member(const std::string& named) {
  const std::string dir = without_slashes(named);
  MemberFolder member;
  member.paths = {.certificate = dir + "/" + kCertificateFile,
                  .key = dir + "/" + kKeyFile,
                  .authority = dir + "/" + kAuthorityFile};
  const bool is_there = attempt(member, [&] {
    (void)find_folder(dir);
    if (is_cluster_folder(dir)) {
      unusable(
          fmt::format("'{0}' is the folder of a whole cluster; name the folder of one worker in "
                      "it, such as '{0}/worker-0'",
                      dir));
    }
    return true;
  });
  if (is_there) {
    attempt(member, [&] { require_own_folder(dir); });
    check_files(member, dir);
  }
  return member;
}

bool is_cluster_folder(const std::string& dir) {
  return !exists(dir + "/" + kCertificateFile) && !exists(dir + "/" + kKeyFile) &&
         (exists(dir + "/" + kAuthorityKeyFile) || exists(dir + "/driver") ||
          exists(dir + "/worker-0"));
}

Certificate read_certificate(const std::string& dir,
                             const std::string& name,
                             std::vector<FileMode>* modes) {
  const std::string path = dir + "/" + name;
  const SmallFile file = read_small_file(path);
  admit(dir, name, file, modes);
  if ((file.mode & kWritableByOthers) != 0) {
    unusable(
        fmt::format("users other than its owner can write to '{0}' (mode {1}), and could "
                    "change which peers this process trusts; check that it is the right file, "
                    "then: chmod 644 '{0}'",
                    path,
                    mode_text(file.mode)));
  }
  return certificate_of_pem(path, file.text);
}

PrivateKey read_key(const std::string& dir, const std::string& name, std::vector<FileMode>* modes) {
  const std::string path = dir + "/" + name;
  SmallFile file = read_small_file(path);
  const SecretText text(std::move(file.text));
  admit(dir, name, file, modes);
  if ((file.mode & forbidden_to_others(file)) != 0) {
    unusable(
        fmt::format("users other than its owner can read or write '{0}' (mode {1}), and "
                    "anybody who has this key can act as its holder; if nobody can have "
                    "read it: chmod 600 '{0}'; otherwise make a new cluster",
                    path,
                    mode_text(file.mode)));
  }
  return key_of_pem(path, text);
}

void require_own_folder(const std::string& dir) {
  const Folder folder = find_folder(dir);
  if ((folder.mode & kWritableByOthers) != 0 && (folder.mode & S_ISVTX) == 0) {
    unusable(
        fmt::format("users other than its owner can write to the folder '{0}' (mode {1}), and "
                    "could replace its files; check that it is the right folder, then: chmod "
                    "700 '{0}'",
                    dir,
                    mode_text(folder.mode)));
  }
}

void require_valid_authority(const std::string& path, const CertificateFacts& facts) {
  check_validity(path, facts, "make a new cluster with stagecraft credentials make DIR");
  if (facts.role == Role::None) {
    unusable(
        fmt::format("'{}' is of an older version, whose certificates do not say who is the driver "
                    "and who is a worker; make a new cluster with stagecraft credentials make DIR, "
                    "and copy its folders to all hosts",
                    path));
  }
}

void require_pair(const std::string& certificate_path,
                  const Certificate& certificate,
                  const std::string& key_path,
                  const PrivateKey& key) {
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    (void)openssl_reason();
    unusable(fmt::format(
        "'{}' is not the key of '{}'; copy both from the same folder", key_path, certificate_path));
  }
}

}  // namespace stagecraft::security
