/// cuda_library opens LibTorch's CUDA part in this process.
///
/// Programs link only LibTorch's CPU part, so a machine without a GPU neither needs the libraries
/// of CUDA nor loads them (some 235 MB). A program that links LibTorch's CUDA part itself has no
/// use for this.
/// CU-1: LibTorch asks once for the accelerators of a process, at the latest in its first backward.
///       What is opened later stays unknown to it.
#pragma once

namespace stagecraft {

/// Opens the library that lies beside LibTorch's own. Does nothing if the process has it. A worker
/// calls it when it is given a rank on CUDA; a program that has ranks as threads calls it before it
/// compiles. Cost: 0.2 to 0.7 s.
/// Errors: UsageArgument, about "device": LibTorch has no CUDA part, one of its libraries is
/// missing, it was asked for too late (CU-1), there is no driver, or no GPU.
void open_cuda();

}  // namespace stagecraft
