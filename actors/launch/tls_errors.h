/// Keeps what goes wrong on one TLS connection from ending others.
///
/// SSL_get_error() looks at its thread's error queue, which OpenSSL wants empty before every
/// operation; CAF 0.17 does not empty it, and serves all connections on one thread. Whatever fails
/// on one, garbage that a stranger sent or the reset of a killed process, would be taken for a
/// failure of the next that merely has nothing to read.
/// TE-1: the error queue of a thread is empty whenever an operation on a TLS connection begins, of
///       whichever library: this program's definitions of these functions come before OpenSSL's.
#pragma once

namespace stagecraft {

/// Has those definitions linked in. Called before a control plane is opened.
void keep_tls_errors_apart();

}  // namespace stagecraft
