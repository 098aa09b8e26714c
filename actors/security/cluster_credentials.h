/// cluster_credentials makes the credentials of a whole cluster: a private authority, and one
/// short-lived certificate and key for the driver and for each worker.
///
///     DIR/            0700
///       ca.pem        the authority, which every member trusts
///       ca-key.pem    0600, the authority's key
///       driver/       0700, complete by itself: the folder for load_credentials
///         ca.pem, certificate.pem, key.pem (0600)
///       worker-0/  worker-1/  ...
///
/// The owner of ca-key.pem can make members: copy it to no host. It may be put away; only
/// issue_member needs it again.
/// An operator copies one member's folder to one host. A process reads its certificate again for
/// every connection, so a renewed one counts at once and without a restart.
///
/// CC-1: nothing is overwritten except the certificate that issue_member renews, and a failure
///       leaves nothing unfinished behind (NF-1, NF-2).
/// CC-2: a renewed certificate is for the member's old key: at no time do the two files disagree.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace stagecraft {

namespace security {
struct Authority;
}

struct CredentialsRequest {
  /// Number of workers; the driver is extra.
  int members = 8;
  /// Validity of the members' certificates.
  std::chrono::seconds valid_for = std::chrono::hours(7 * 24);
  /// Validity of the authority, at least that of the members: until then it can issue others.
  std::chrono::seconds authority_valid_for = std::chrono::hours(24 * 365);
  /// Name for people: letters, digits, '.', '_' and '-'. Empty: a random name.
  std::string cluster;
  /// Begin of the validity, less five minutes for clocks that disagree.
  std::chrono::system_clock::time_point starts = std::chrono::system_clock::now();
  /// Make the disk keep the files before they appear.
  bool durable = true;
};

/// Makes the folder `dir` with the credentials of a new cluster. Keeps CC-1.
/// Errors: UsageArgument for a request out of range; UsageFile if `dir` exists or cannot be made.
void make_credentials(const std::string& dir, const CredentialsRequest& request = {});

/// MemberIssuer makes the credentials of a cluster whose authority's key is only in this process:
/// nobody can make a member once the object is gone. A value of one thread.
class MemberIssuer {
 public:
  /// Makes the folder `dir` as make_credentials() does, without ca-key.pem. Errors: likewise.
  MemberIssuer(std::string dir, const CredentialsRequest& request);
  ~MemberIssuer();
  MemberIssuer(MemberIssuer&&) noexcept;
  MemberIssuer& operator=(MemberIssuer&&) noexcept;

  /// Does for the cluster what issue_member() does. Errors: likewise.
  void issue(const std::string& member, std::chrono::seconds valid_for) const;

 private:
  std::string dir_;
  std::unique_ptr<const security::Authority> authority_;
};

/// Makes a certificate for `member` ("driver", "worker-3"; other names are workers too) from the
/// authority in `dir`. Renews that of the member's folder, or makes the folder if there is none.
/// The certificate ends with the authority's at the latest. Keeps CC-1 and CC-2.
/// Errors: UsageArgument for a name or a time out of range; UsageFile if load_credentials would
///         refuse the authority, its key or the member's folder, or if they cannot be written.
void issue_member(const std::string& dir,
                  const std::string& member,
                  std::chrono::seconds valid_for,
                  std::chrono::system_clock::time_point starts = std::chrono::system_clock::now());

/// Returns "worker-3": the name and folder of the worker with this number.
[[nodiscard]] std::string worker_name(int worker);

/// Returns 3 for "worker-3"; nothing for a name without a number.
[[nodiscard]] std::optional<int> worker_number(const std::string& name);

}  // namespace stagecraft
