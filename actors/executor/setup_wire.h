/// What a rank is told, as bytes for another process, and back.
///
///   8 bytes   "STGSETUP"
///   8 bytes   version of the form, little-endian
///   8 bytes   number of tensors that it speaks of, little-endian
///   rest      msgpack, an array of two: the facts of these tensors, the RankSetup (fields.h)
///
/// Written where the ranks' setups are made, read by a worker in another process; docs/protocol.md
/// says what is promised.
/// SW-1: what decode_setup returns encodes to the same bytes again, and runs with the same bits.
/// SW-2: what decode_setup returns can be bound and run as safely as what this process made
///       (verify_setup.h); nothing is believed before it was checked, and memory is taken for what
///       was received, never for what it claims.
/// SW-3: what exists in one process alone is refused when it is written: attachments of stages,
///       TrainerOptions::before_instruction, and a CustomOptimizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/rank_setup.h"
#include "stagecraft/actors/executor/rank_variant.h"

namespace stagecraft {

/// Changes with every change to the fields of any record of a setup, and to how one is written.
inline constexpr std::uint64_t kSetupVersion = 6;  // of variants too

struct EncodedSetup {
  std::string bytes;
  /// Constants of the stages, as the bytes speak of them by number: contiguous, of one dimension.
  /// They share memory with the setup's. Shapes and strides are in the bytes.
  std::vector<at::Tensor> tensors;
};

/// What of a setup exists in this process alone, one sentence each: `stage "head" has 1 hook on
/// %h`.
[[nodiscard]] std::vector<std::string> obstacles(const RankSetup& setup);

/// Errors: UsageArgument, with the obstacles.
[[nodiscard]] EncodedSetup encode(const RankSetup& setup);

/// How many tensors the bytes of a setup or variant speak of: at most as many as there are bytes.
/// Looks at the beginning alone.
/// Errors: WireFormat for bytes that begin otherwise, and for another version.
[[nodiscard]] std::size_t tensor_count(std::string_view bytes);

/// `tensors`: those of EncodedSetup, in their order, which the setup then shares memory with.
/// Errors: WireFormat for what is no setup; PlanInvalid, with what is wrong, for one that cannot be
///         run.
[[nodiscard]] RankSetup decode_setup(std::string_view bytes,
                                     const std::vector<at::Tensor>& tensors);

/// Likewise what a rank is told of another shape: "STGSHAPE" instead, then the same with a
/// RankVariant. It is judged whole when the executor takes it on.
[[nodiscard]] EncodedSetup encode(const RankVariant& variant);
[[nodiscard]] RankVariant decode_variant(std::string_view bytes,
                                         const std::vector<at::Tensor>& tensors);

/// What of it exists in this process alone.
[[nodiscard]] std::vector<std::string> obstacles(const RankVariant& variant);

}  // namespace stagecraft
