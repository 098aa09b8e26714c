/// Credentials: what one process of a cluster shows to the others, and whom it believes.
///
/// Three files in a folder of the member's own: `certificate.pem` and `key.pem`, which it shows and
/// proves, and `ca.pem`, the authority of its cluster. cluster_credentials.h makes them; what a
/// certificate allows is in docs/security.md. The control plane reads the files by name and ends,
/// or hangs, on wrong ones: so they are judged here first.
///
/// CE-1: what load_credentials returns, TLS takes, as server and as client, and by the modes of
///       folder and files nobody but their owner and root could have read the key or changed what
///       is believed; of a key that root lends to a group, nobody but who is in it.
#pragma once

#include <string>

namespace stagecraft {

/// Paths of PEM files.
struct Credentials {
  std::string certificate, key, authority;
};

/// Returns the credentials in `dir`, the folder of one member. Keeps CE-1.
/// Errors: UsageFile for each of: no folder, the folder of a whole cluster, a folder others may
/// write to; a file that is missing, unreadable, no file, empty, no PEM, cut short or damaged; a
/// key under a passphrase, or open to others (one of root's may be lent by its group to a process
/// that is not root); certificate or authority that others may write to, expired or not yet
/// valid; a key of another certificate; a certificate of another authority. The first that is found
/// is told, and how many more there are.
[[nodiscard]] Credentials load_credentials(const std::string& dir);

}  // namespace stagecraft
