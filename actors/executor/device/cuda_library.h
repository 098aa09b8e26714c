/// cuda_library opens LibTorch's CUDA part in this process.
///
/// Programs link only LibTorch's CPU part, so a machine without a GPU neither needs the libraries
/// of CUDA nor loads them (some 235 MB). A program that links LibTorch's CUDA part itself has no
/// use for this.
/// CU-1: LibTorch asks once for the accelerators of a process: in torch::manual_seed(), in the
///       first backward, or where it looks whether memory is pinned. What is opened later stays
///       unknown to it.
#pragma once

#include <optional>
#include <string>

namespace stagecraft {

/// CudaObstacle says why a process cannot use CUDA, and what mends that.
struct CudaObstacle {
  std::string reason, remedy;
};

/// Opens the library that lies beside LibTorch's own, unless the process has it. Any thread may
/// call it. Cost: 0.2 to 0.7 s.
[[nodiscard]] std::optional<CudaObstacle> try_open_cuda();

/// Does the same. A worker calls it when it is given a rank on CUDA; a program that has ranks as
/// threads calls it first in main() (CU-1).
/// Errors: UsageArgument, about "device": LibTorch has no CUDA part, one of its libraries is
/// missing, it was asked for too late, there is no driver, or no GPU.
void open_cuda();

/// Lets NCCL connect all that a communicator may use when it is made, unless the user's environment
/// says otherwise: a connection in a later call would hold the host. The functions above do it too;
/// a worker calls it first in main(), because a process with threads must not change its
/// environment.
void connect_nccl_early();

}  // namespace stagecraft
