#include "stagecraft/actors/executor/nccl/ticket.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>

#include <ATen/ops/empty.h>
#include <c10/util/safe_numerics.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

// int64: number, dtype, then sizes, then strides.
constexpr std::int64_t kHead = 2;
constexpr std::int64_t kMostDimensions = 64;

/// Returns whether a tensor of these sizes and strides has each element of its memory once, and no
/// more bytes than an int64 counts.
bool is_dense(const Ticket& ticket) {
  std::vector<std::size_t> dimensions(ticket.sizes.size());
  std::iota(dimensions.begin(), dimensions.end(), std::size_t{0});
  const auto by_stride = [&](std::size_t a, std::size_t b) {
    return ticket.strides[a] < ticket.strides[b];
  };
  std::ranges::stable_sort(dimensions, by_stride);
  std::uint64_t elements = 1;
  for (const std::size_t d : dimensions) {
    if (ticket.sizes[d] != 1) {
      if (static_cast<std::uint64_t>(ticket.strides[d]) != elements ||
          c10::mul_overflows(elements, static_cast<std::uint64_t>(ticket.sizes[d]), &elements)) {
        return false;
      }
    }
  }
  std::uint64_t bytes = 0;
  return !c10::mul_overflows(
             elements, static_cast<std::uint64_t>(at::elementSize(ticket.dtype)), &bytes) &&
         bytes <= static_cast<std::uint64_t>(INT64_MAX);
}

}  // namespace

at::Tensor to_ticket(const at::Tensor& tensor, std::int64_t number) {
  at::Tensor ticket = at::empty({kHead + 2 * tensor.dim()}, at::kLong);
  auto* out = ticket.mutable_data_ptr<std::int64_t>();
  *out++ = number;
  *out++ = static_cast<std::int64_t>(tensor.scalar_type());
  out = std::ranges::copy(tensor.sizes(), out).out;
  std::ranges::copy(tensor.strides(), out);
  return ticket;
}

Ticket read_ticket(const at::Tensor& ticket, Rank from) {
  const auto refuse = [&](std::string_view why) {
    return Error(Errc::WireFormat,
                 fmt::format("{} announces a tensor by {}", peer_name(from), why));
  };
  if (ticket.scalar_type() != at::kLong || ticket.dim() != 1 || !ticket.is_contiguous() ||
      ticket.numel() < kHead || ticket.numel() > kHead + 2 * kMostDimensions ||
      ticket.numel() % 2 != 0) {
    throw refuse("something else than a ticket");
  }
  const std::span<const std::int64_t> said(ticket.const_data_ptr<std::int64_t>(),
                                           static_cast<std::size_t>(ticket.numel()));
  const auto numbers = said.subspan(kHead);
  if (std::ranges::any_of(numbers, [](std::int64_t n) { return n < 0; })) {
    throw refuse("sizes or strides below 0");
  }
  if (said[1] < 0 || said[1] >= static_cast<std::int64_t>(at::ScalarType::Undefined) ||
      at::isQIntType(static_cast<at::ScalarType>(said[1]))) {
    throw refuse(fmt::format("type {}, which is no type of LibTorch's plain tensors", said[1]));
  }
  const auto sizes = numbers.first(numbers.size() / 2), strides = numbers.last(numbers.size() / 2);
  Ticket told{.number = said[0],
              .dtype = static_cast<at::ScalarType>(said[1]),
              .sizes = {sizes.begin(), sizes.end()},
              .strides = {strides.begin(), strides.end()}};
  const bool is_empty = std::ranges::find(sizes, 0) != sizes.end();
  if (!is_empty && !is_dense(told)) {
    throw refuse("strides that are not those of a dense tensor");
  }
  return told;
}

}  // namespace stagecraft
