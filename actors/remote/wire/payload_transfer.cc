#include "stagecraft/actors/remote/wire/payload_transfer.h"

#include <atomic>
#include <cstring>
#include <utility>

#include <ATen/ops/empty.h>

namespace stagecraft {
namespace {

constexpr std::size_t kCountBytes = sizeof(std::uint64_t);

/// The number of tensors comes first, because the receiver asks for each of them.
at::Tensor head_of(const Payload& payload) {
  at::Tensor head =
      at::empty({static_cast<std::int64_t>(kCountBytes + payload.bytes.size())}, at::kByte);
  auto* bytes = static_cast<char*>(head.mutable_data_ptr());
  const std::uint64_t count = payload.tensors.size();
  std::memcpy(bytes, &count, kCountBytes);
  std::memcpy(bytes + kCountBytes, payload.bytes.data(), payload.bytes.size());
  return head;
}

Tag tensor_tag(Tag tag, std::size_t index) {
  tag.microbatch = Microbatch(tag.microbatch.value + 1 + static_cast<std::int32_t>(index));
  return tag;
}

/// Arriving is a payload of which the bytes are here, and the tensors perhaps not yet.
struct Arriving {
  Promise<Payload> whole;
  std::string bytes;
  std::vector<Future<at::Tensor>> tensors;
  std::atomic<std::size_t> missing = 0;

  void complete() {
    try {
      Payload payload{std::move(bytes), {}};
      for (const Future<at::Tensor>& tensor : tensors) {
        payload.tensors.push_back(tensor.get());
      }
      whole.set_value(std::move(payload));
    } catch (const Error& error) {
      whole.set_error(error);
    }
  }
};

/// Returns how many tensors follow. Errors: WireFormat.
std::size_t take_head(const at::Tensor& head, Arriving& arriving) {
  const auto size = static_cast<std::size_t>(head.nbytes());
  std::uint64_t count = 0;
  if (head.scalar_type() == at::kByte && size >= kCountBytes) {
    const auto* bytes = static_cast<const char*>(head.const_data_ptr());
    std::memcpy(&count, bytes, kCountBytes);
    arriving.bytes.assign(bytes + kCountBytes, size - kCountBytes);
  }
  if (arriving.bytes.empty() || count > arriving.bytes.size()) {  // the bytes name each tensor
    throw Error(Errc::WireFormat,
                "a tensor that should begin a payload does not: both ends must be of the same "
                "version");
  }
  return count;
}

}  // namespace

void send_payload(Transport& end, Rank to, const Tag& tag, Payload payload) {
  at::Tensor head = head_of(payload);
  for (std::size_t i = 0; i < payload.tensors.size(); ++i) {
    end.send(to, tensor_tag(tag, i), std::move(payload.tensors[i]));
  }
  end.send(to, tag, std::move(head));  // last: who has it waits for all the others
}

Future<Payload> receive_payload(const std::shared_ptr<Transport>& end, Rank from, const Tag& tag) {
  const auto arriving = std::make_shared<Arriving>();
  Future<Payload> whole = arriving->whole.future();
  const Future<at::Tensor> head = end->receive(from, tag);
  (void)head.on_ready([end, from, tag, head, arriving] {
    try {
      const std::size_t count = take_head(head.get(), *arriving);
      if (count == 0) {
        arriving->complete();
        return;
      }
      for (std::size_t i = 0; i < count; ++i) {
        arriving->tensors.push_back(end->receive(from, tensor_tag(tag, i)));
      }
      arriving->missing = count;
      for (const Future<at::Tensor>& tensor : arriving->tensors) {
        (void)tensor.on_ready([arriving] {
          if (--arriving->missing == 0) {
            arriving->complete();
          }
        });
      }
    } catch (const Error& error) {
      arriving->whole.set_error(error);
    }
  });
  return whole;
}

}  // namespace stagecraft
