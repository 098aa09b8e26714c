#include "stagecraft/actors/executor/device/stream_passing.h"

#include <utility>

#include <ATen/ops/empty_like.h>
#include <c10/core/Event.h>
#include <c10/util/ScopeExit.h>

#include "stagecraft/compiler/libtorch/host_memory.h"

namespace stagecraft {
namespace {

constexpr int kHighPriority = -1;

/// Readable is the point after which a tensor that is handed over can be read. It travels with the
/// tensor.
struct Readable final : c10::BackendMeta {
  explicit Readable(c10::Event point) : after(std::move(point)) {}
  c10::Event after;
};

}  // namespace

StreamPassing::StreamPassing(c10::Device place) : place_(place), guard_(place.type()) {}

at::Tensor StreamPassing::hand_over(const c10::Stream& writer, const at::Tensor& tensor) {
  c10::Event after(writer.device_type());
  after.record(writer);
  at::Tensor handed = tensor.detach();  // the same memory, with a point of its own
  handed.unsafeGetTensorImpl()->set_backend_meta(c10::make_intrusive<Readable>(std::move(after)));
  return handed;
}

at::Tensor StreamPassing::take_over(const c10::Stream& reader, at::Tensor tensor) {
  const auto readable = c10::dynamic_intrusive_pointer_cast<Readable>(
      tensor.unsafeGetTensorImpl()->get_backend_meta_intrusive_ptr());
  if (readable == nullptr) {
    return tensor.is_cpu() ? copy_to_device(tensor, place_)
                           : tensor.to(place_, /*non_blocking=*/true);
  }
  if (tensor.device() == place_) {
    readable->after.block(reader);
    guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), reader);
    tensor.unsafeGetTensorImpl()->set_backend_meta({});
    return tensor;
  }
  if (tensor.numel() == 0) {  // copying nothing would order nothing
    readable->after.block(reader);
    return at::empty_like(tensor, tensor.options().device(place_));
  }
  const c10::Stream source = reader_of(tensor.device());
  readable->after.block(source);
  guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), source);
  // LibTorch copies on the current stream of the source's device, ordered with ours.
  const c10::Stream before = guard_.exchangeStream(source);
  const auto back = c10::make_scope_exit([&] { (void)guard_.exchangeStream(before); });
  return tensor.to(place_, /*non_blocking=*/true);
}

at::Tensor StreamPassing::hand_over(const at::Tensor& tensor) {
  return tensor.device().type() == place_.type() ? hand_over(guard_.getStream(place_), tensor)
                                                 : tensor;
}

at::Tensor StreamPassing::take_over(at::Tensor tensor) {
  return tensor.device().type() == place_.type()
             ? take_over(guard_.getStream(place_), std::move(tensor))
             : tensor;
}

/// Returns this rank's stream for reading from another device. It is not one of the rank's own
/// there, so no work that others give to that device delays it.
c10::Stream StreamPassing::reader_of(c10::Device device) {
  const std::scoped_lock lock(mutex_);
  const auto found = readers_.find(device);
  return found != readers_.end()
             ? found->second
             : readers_.emplace(device, guard_.getNewStream(device, kHighPriority)).first->second;
}

SumStream::SumStream(c10::Device place)
    : guard_(place.type()), stream_(guard_.getNewStream(place, kHighPriority)) {}

void SumStream::use() const {
  guard_.setDevice(stream_.device());
  (void)guard_.exchangeStream(stream_);
}

void SumStream::synchronize() const {
  guard_.synchronizeStream(stream_);
}

}  // namespace stagecraft
