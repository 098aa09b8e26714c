#include "stagecraft/futures/transport/zmq/frames/reassembly.h"

#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

template <class... Parts>
Error refused(fmt::format_string<Parts...> format, Parts&&... parts) {
  return Error(Errc::TransportRefused, fmt::format(format, std::forward<Parts>(parts)...));
}

/// Returns whether `next` continues where `last` ended.
bool continues(const FrameHeader& last, const FrameHeader& next) {
  FrameHeader expected = last;
  expected.link = next.link;
  expected.sequence = next.sequence;
  expected.offset = last.offset + last.chunk;
  expected.chunk = next.chunk;
  return next == expected;
}

void copy(std::string_view bytes, std::int64_t offset, const at::Tensor& tensor) {
  if (!bytes.empty()) {
    std::memcpy(static_cast<char*>(tensor.mutable_data_ptr()) + offset, bytes.data(), bytes.size());
  }
}

}  // namespace

std::optional<at::Tensor> Reassembly::take(const FrameHeader& header,
                                           std::string_view bytes,
                                           bool wanted) {
  if (is_over(header)) {
    return std::nullopt;
  }
  try {
    check_order(header);
    return add(header, bytes, wanted);
  } catch (...) {
    break_link();
    throw;
  }
}

bool Reassembly::take_in_slot(const FrameHeader& header) {
  if (is_over(header)) {
    return false;
  }
  try {
    check_order(header);
    check_size(header);
  } catch (...) {
    break_link();
    throw;
  }
  return true;
}

bool Reassembly::is_over(const FrameHeader& header) const {
  return link_ && (header.link < *link_ || (header.link == *link_ && broken_));
}

void Reassembly::break_link() {
  broken_ = true;
  forget_partial();
}

void Reassembly::check_order(const FrameHeader& header) {
  if (!link_ || header.link > *link_) {
    link_ = header.link;
    next_ = 0;
    broken_ = false;
    forget_partial();
  }
  if (header.sequence != next_) {
    throw refused("frames were lost: expected frame {} of link {}, received frame {}",
                  next_,
                  header.link,
                  header.sequence);
  }
  ++next_;
}

void Reassembly::check_size(const FrameHeader& header) const {
  if (header.total > largest_tensor_) {
    throw refused(
        "the peer announced a tensor of {} bytes, but at most {} are allowed: raise largest_tensor",
        header.total,
        largest_tensor_);
  }
}

std::optional<at::Tensor> Reassembly::add(const FrameHeader& header,
                                          std::string_view bytes,
                                          bool wanted) {
  if (bytes.size() != static_cast<std::size_t>(header.chunk)) {
    throw refused("expected a chunk of {} bytes, received {}", header.chunk, bytes.size());
  }
  check_size(header);
  auto at = partial_.find(header.transfer);
  if (at == partial_.end()) {
    if (header.offset != 0) {
      throw refused("the first chunk of a tensor begins at byte {}, expected byte 0",
                    header.offset);
    }
    at::Tensor tensor =
        wanted ? at::empty(header.sizes, at::TensorOptions().dtype(header.dtype)) : at::Tensor();
    if (header.chunk == header.total) {
      if (wanted) {
        copy(bytes, 0, tensor);
      }
      return tensor;
    }
    if (partial_.size() >= kMostPartial) {
      throw refused("the peer sends more than {} tensors at once", kMostPartial);
    }
    at = partial_.emplace(header.transfer, Partial{header, std::move(tensor)}).first;
    bytes_ += wanted ? header.total : 0;
  } else if (!continues(at->second.header, header)) {
    throw refused("a chunk at byte {} does not continue its tensor, whose next byte is {}",
                  header.offset,
                  at->second.header.offset + at->second.header.chunk);
  }
  Partial& partial = at->second;
  partial.header = header;
  if (partial.tensor.defined() && !wanted) {
    bytes_ -= header.total;
    partial.tensor.reset();
  }
  if (partial.tensor.defined()) {
    copy(bytes, header.offset, partial.tensor);
  }
  if (header.offset + header.chunk < header.total) {
    return std::nullopt;
  }
  at::Tensor whole = std::move(partial.tensor);
  bytes_ -= whole.defined() ? header.total : 0;
  partial_.erase(at);
  return whole;
}

void Reassembly::forget_partial() {
  partial_.clear();
  bytes_ = 0;
}

}  // namespace stagecraft
