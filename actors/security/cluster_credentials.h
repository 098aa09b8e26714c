/// The credentials of a whole cluster: a private authority, and from it one short-lived certificate
/// and key for the driver and for each worker.
///
///     DIR/            0700
///       ca.pem        the authority, which every member believes
///       ca-key.pem    0600, the authority's key
///       driver/       0700, complete by itself: what load_credentials takes
///         ca.pem, certificate.pem, key.pem (0600)
///       worker-0/  worker-1/  ...
///
/// Whoever has ca-key.pem can make members: it goes to no host. It may be put away, and is needed
/// again for issue_member alone.
/// An operator copies one member's folder to one host. A process reads its certificate again for
/// every connection, so a renewed one counts at once and without a restart.
///
/// CC-1: nothing is written over but the certificate that issue_member renews, and nothing
///       half-made is left behind by a failure (NF-1, NF-2).
/// CC-2: a renewed certificate is for the member's old key: at no time do the two files disagree.
#pragma once

#include <chrono>
#include <string>

namespace stagecraft {

struct CredentialsRequest {
  /// Workers; the driver comes on top.
  int members = 8;
  /// The members' certificates.
  std::chrono::seconds valid_for = std::chrono::hours(7 * 24);
  /// The authority's own, or as long as these: until then it can issue others.
  std::chrono::seconds authority_valid_for = std::chrono::hours(24 * 365);
  /// What people call it: letters, digits, '.', '_' and '-'; a random name where empty.
  std::string cluster;
  /// From when on they are valid, less five minutes for clocks that disagree.
  std::chrono::system_clock::time_point starts = std::chrono::system_clock::now();
  /// Have the disk keep them before they are there.
  bool durable = true;
};

/// Makes the folder `dir` with the credentials of a new cluster. Keeps CC-1.
/// Errors: UsageArgument for a request out of range; UsageFile where `dir` exists or cannot be
/// made.
void make_credentials(const std::string& dir, const CredentialsRequest& request = {});

/// Makes a certificate for `member` ("driver", "worker-3") from the authority in `dir`: renews that
/// of its folder, or makes the folder where there is none. It ends with the authority's at the
/// latest. Keeps CC-1 and CC-2.
/// Errors: UsageArgument for a name or a time out of range; UsageFile where the authority, its key
/// or the member's folder are not what load_credentials would take, or cannot be written.
void issue_member(const std::string& dir,
                  const std::string& member,
                  std::chrono::seconds valid_for,
                  std::chrono::system_clock::time_point starts = std::chrono::system_clock::now());

/// "worker-3": the folder of the worker with this number.
[[nodiscard]] std::string worker_name(int worker);

}  // namespace stagecraft
