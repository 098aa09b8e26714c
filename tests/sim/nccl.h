/// A simulated NCCL: functions with the names and the binary interface of NVIDIA's, over the
/// streams of the simulated devices. A program that exports them has found NCCL (nccl_library.h).
///
/// SNC-1: the n-th send of a communicator meets its n-th receive. Neither ends before both run:
///        there is no buffer in between. (Streams that run at once have one, or the host would
///        stand.)
/// SNC-2: a call only begins: its transfer is given to the stream later, as by NCCL's own threads.
///        The first calls of a communicator are done once both ends have made theirs.
/// SNC-3: an abort ends the transfers of its end alone.
/// SNC-4: two ends on one device are refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::sim {

/// Returns how many transfers all communicators were given since the process began, without the
/// first of each.
[[nodiscard]] std::int64_t nccl_transfers();

/// Returns each transfer that runs or waits, as "send 3 of communicator 2".
[[nodiscard]] std::vector<std::string> nccl_unfinished();

/// While it exists, the calls of NCCL with this name, as "ncclSend", fail.
class NcclFails {
 public:
  explicit NcclFails(std::string call);
  ~NcclFails();
  NcclFails(const NcclFails&) = delete;
  NcclFails& operator=(const NcclFails&) = delete;
};

}  // namespace stagecraft::sim
