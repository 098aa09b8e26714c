/// equality trains models of the command on a device, as pipelines and as one rank, and compares
/// the results.
///
/// On one device a schedule must not change a bit: each rank makes the same calls with the same
/// numbers. Two copies of a pipeline add their gradients in another order, so only their losses are
/// compared, to a stated part.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::gpu {

struct Equality {
  std::string name;     ///< of what was trained
  std::string problem;  ///< empty: equal
};

/// Trained is the result of a run, as `stagecraft train` prints it.
struct Trained {
  std::vector<double> losses;
  std::string weights;     ///< their checksum
  bool used_nccl = false;  ///< NCCL said so (NCCL_DEBUG)
};

/// Reads what `stagecraft train --json` prints. Errors: std::runtime_error if the run has no end.
[[nodiscard]] Trained read_trained(const std::string& printed);

/// Return what differs from the run of one rank; empty if nothing does. `part`: of a loss, by which
/// it may differ.
[[nodiscard]] std::string different_losses(const Trained& run, const Trained& alone, double part);
[[nodiscard]] std::string different_bits(const Trained& run, const Trained& alone);

/// The largest difference of two losses of copies, as a part of the loss.
inline constexpr double kCopiesDiffer = 1e-5;

/// How much to train.
enum class Extent { All, Some };

/// Trains on the device of this name (TrainerOptions::device), with its number. All: every model,
/// and every builder with 2 and 4 ranks. Some: one model, and two builders.
[[nodiscard]] std::vector<Equality> equalities(const std::string& device, Extent extent);

/// Trains with a rank on each of two devices of the kind ("cuda"), as threads and as processes of
/// `program`, the command, and compares losses with those of one rank, to kCopiesDiffer.
[[nodiscard]] std::vector<Equality> equalities_between_devices(const std::string& kind,
                                                               const std::string& program);

/// Trains with processes of `program` that share the CUDA device, each as on a host of its own, so
/// that NCCL joins them, and compares bits with those of ranks that hand over or sum in the host's
/// memory.
[[nodiscard]] std::vector<Equality> equalities_by_nccl(const std::string& device,
                                                       const std::string& program);

}  // namespace stagecraft::gpu
