/// A simulated NCCL: functions with the names and the binary interface of NVIDIA's, over the
/// streams of the simulated devices. A program that exports them has found NCCL (nccl_library.h).
///
/// SNC-1: the n-th send of a member to another meets its n-th receive. Neither ends before both
///        run: there is no buffer in between. (Streams that run at once have one, or the host would
///        stand. It does stand in a call of a group, until all members have called.)
/// SNC-2: a call only begins: its work is given to the stream later, as by NCCL's own threads.
///        The first calls of a communicator are done once all members have made theirs.
/// SNC-3: an abort ends the work of its end alone.
/// SNC-4: two members on one device are refused.
/// SNC-5: an all_reduce adds from the last member to the first, unlike ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stagecraft::sim {

/// Returns how many transfers all pairs' communicators were given since the process began, without
/// the first of each.
[[nodiscard]] std::int64_t nccl_transfers();

/// Returns how many calls the members of groups have made since the process began.
[[nodiscard]] std::int64_t nccl_group_calls();

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
