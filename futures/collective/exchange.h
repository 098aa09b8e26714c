/// exchange holds the functions that all operations over a transport share: they send tensors to
/// the other members and wait for theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft::collective {

using Tensors = std::vector<at::Tensor>;

/// Round distinguishes the tensors of an operation's rounds.
enum class Round : std::uint8_t { First, Second, Third };

/// Checks what Collective requires of each start. Errors: Internal.
void check_start(const Group& group, Rank self, const at::Tensor& contribution);

/// Returns the buffer in equal parts. Errors: Internal if `count` does not divide its size.
[[nodiscard]] Tensors equal_parts(const at::Tensor& buffer, std::size_t count);

/// Keeps TG-1: group g has edge -1 - g. The number within the step takes the place of the
/// microbatch; after the first round the numbers are below 0.
[[nodiscard]] Tag tag_of(const Group& group, const Sequence& sequence, Round round = Round::First);

/// Requests the tensors of all members, by rank. `own`: this member's tensor.
[[nodiscard]] std::vector<Arrival> receive_all(Transport& transport,
                                               const Group& group,
                                               const Tag& tag,
                                               const at::Tensor& own);

/// Waits until all have arrived or failed. `name`: the operation's name, for messages.
/// Errors: ClusterTimeout, with the ranks that are missing.
void wait_for(WaitBoard& board,
              const std::string& name,
              const std::vector<Arrival>& arrivals,
              Deadline deadline);

/// Returns the tensors by rank. Errors: those of the transport.
[[nodiscard]] Tensors tensors_of(const std::vector<Arrival>& arrivals);

/// Compares sizes and dtypes. Errors: Internal, with two ranks whose sizes or dtypes differ.
void check_alike(const std::string& name, const std::vector<Rank>& ranks, const Tensors& tensors);

}  // namespace stagecraft::collective
