/// load_credentials checks the files by which a process of a cluster proves itself to others and
/// judges them.
///
/// There are three files in the member's own folder: `certificate.pem` and `key.pem`, which it
/// shows and proves, and `ca.pem`, the authority of its cluster. cluster_credentials.h makes them;
/// docs/security.md says what a certificate allows. The control plane reads the files by name and
/// ends, or hangs, on wrong ones, so they are judged here first.
///
/// CE-1: TLS takes the result of load_credentials, as server and as client. By the modes of folder
///       and files, only their owner and root could have read the key or changed the files. The
///       members of a group could also have read a key that root lends to the group.
#pragma once

#include <string>

#include "stagecraft/actors/security/credential_paths.h"

namespace stagecraft {

/// Returns the credentials in `dir`, the folder of one member. Keeps CE-1.
/// Errors: UsageFile for each of: no folder, the folder of a whole cluster, a folder to which
///         others may write; a file that is missing, unreadable, no file, empty, no PEM, cut short
///         or damaged; a key under a passphrase, or readable by others (root may lend its key by a
///         group to a process that is not root); certificate or authority to which others may
///         write, expired or not yet valid; a key of another certificate; a certificate of another
///         authority, or without a role. The message has the first fault, and the number of
///         further ones.
[[nodiscard]] Credentials load_credentials(const std::string& dir);

/// Returns the credentials in `dir` for a worker process.
/// Errors: as load_credentials, and UsageFile for the driver's certificate, which no driver would
///         let in.
[[nodiscard]] Credentials load_worker_credentials(const std::string& dir);

/// Returns the driver's credentials in `cluster`, the folder of a cluster.
/// Errors: as load_credentials, and UsageFile for the folder of one member, or if the driver's
///         folder has the certificate of a worker.
[[nodiscard]] Credentials load_driver_credentials(const std::string& cluster);

}  // namespace stagecraft
