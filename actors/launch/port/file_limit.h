/// file_limit raises the limit of open files of a process that listens for others.
#pragma once

namespace stagecraft {

/// The number of descriptors that a control port leaves free for this process's own work (TD-1).
inline constexpr int kSpareDescriptors = 64;

/// Raises this process's soft limit of open files to its hard limit, so that a peer that only opens
/// connections does not use them up soon.
void raise_file_limit();

/// Checks the limit. Errors: UsageArgument if this process may not open the files that this number
/// of workers needs.
void require_files(int workers);

}  // namespace stagecraft
