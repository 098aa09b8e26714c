/// setup_wire encodes a rank's setup as bytes for another process, and decodes it.
///
///   8 bytes   "STGSETUP"
///   8 bytes   version of the form, little-endian
///   8 bytes   number of the tensors that it refers to, little-endian
///   rest      msgpack, an array of two: the facts of these tensors, the RankSetup (fields.h)
///
/// It is written where the ranks' setups are made, and read by a worker in another process.
/// docs/protocol.md states the guarantees.
/// SW-1: a decoded setup encodes to the same bytes again, and runs with the same bits.
/// SW-2: a decoded setup can be bound and run as safely as one that this process made
///       (verify_setup.h). The decoder believes nothing unchecked, and takes memory for the bytes
///       received, never for the sizes claimed.
/// SW-3: the encoder refuses what exists in one process alone: attachments of stages,
///       TrainerOptions::before_instruction, and a CustomOptimizer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/setup/rank_shape.h"

namespace stagecraft {

/// The version of the form. It changes with the fields of any record of a setup, and with the way
/// one is written.
inline constexpr std::uint64_t kSetupVersion = 18;  // of shapes too

struct EncodedSetup {
  std::string bytes;
  /// Constants of the stages, to which the bytes refer by number: contiguous, of one dimension.
  /// They share memory with the setup's. The bytes hold shapes and strides.
  std::vector<at::Tensor> tensors;
};

/// Returns the parts of a setup that exist in this process alone, one sentence each: `stage "head"
/// has 1 hook on %h`.
[[nodiscard]] std::vector<std::string> obstacles(const RankSetup& setup);

/// Encodes a setup. Errors: UsageArgument, with the obstacles.
[[nodiscard]] EncodedSetup encode(const RankSetup& setup);

/// Returns the number of tensors to which the bytes of a setup or shape refer: at most the number
/// of bytes. Reads only the beginning.
/// Errors: WireFormat for bytes that begin otherwise, and for another version.
[[nodiscard]] std::size_t tensor_count(std::string_view bytes);

/// Decodes a setup. `tensors`: those of EncodedSetup, in their order; the setup shares memory with
/// them.
/// Errors: WireFormat for bytes that are no setup; PlanInvalid, with the findings, for a setup that
/// cannot run.
[[nodiscard]] RankSetup decode_setup(std::string_view bytes,
                                     const std::vector<at::Tensor>& tensors);

/// Encodes a shape likewise: begins with "STGSHAPE" and holds a RankShape. The executor judges it
/// as a whole when it takes it on.
[[nodiscard]] EncodedSetup encode(const RankShape& shape);
[[nodiscard]] RankShape decode_shape(std::string_view bytes,
                                     const std::vector<at::Tensor>& tensors);

/// Returns the parts of a shape that exist in this process alone.
[[nodiscard]] std::vector<std::string> obstacles(const RankShape& shape);

}  // namespace stagecraft
