#include "stagecraft/actors/executor/device/accelerator.h"

#include <chrono>
#include <exception>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "stagecraft/actors/executor/device/stream_passing.h"

namespace stagecraft {
namespace {

using c10::impl::VirtualGuardImpl;

std::int64_t host_time() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

class Accelerator final : public Device {
 public:
  explicit Accelerator(c10::Device place) : place_(place), guard_(place.type()) {
    at::globalContext().lazyInitDevice(place_.type());  // for the counts of its allocator
    guard_.setDevice(place_);
    start_.record(stream(StreamId(0)));
    start_.synchronize();
    start_time_ = host_time();
  }

  [[nodiscard]] c10::Device place() const override { return place_; }
  void use(StreamId id) override {
    guard_.setDevice(place_);
    (void)guard_.exchangeStream(stream(id));
  }
  Event record(StreamId id) noexcept override {
    try {
      if (next_ == events_.size()) {
        events_.emplace_back(place_.type(), c10::EventFlag::BACKEND_DEFAULT);  // with times
      }
      events_[next_].record(stream(id));
      return {static_cast<std::int64_t>(next_++)};
    } catch (...) {
      failure_ = failure_ ? failure_ : std::current_exception();
      return {};
    }
  }
  void wait(StreamId id, Event event) override {
    events_[static_cast<std::size_t>(event.value)].block(stream(id));
  }
  void keep_for(StreamId id, const at::Tensor& tensor) override {
    if (tensor.defined() && tensor.device() == place_) {
      guard_.recordDataPtrOnStream(tensor.storage().data_ptr(), stream(id));
    }
  }
  [[nodiscard]] at::Tensor hand_over(StreamId id, const at::Tensor& tensor) override {
    return StreamPassing::hand_over(stream(id), tensor);
  }
  [[nodiscard]] at::Tensor take_over(StreamId id, at::Tensor tensor) override {
    return passing_.take_over(stream(id), std::move(tensor));
  }
  void synchronize() override {
    if (failure_) {
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
    for (const c10::Stream& one : streams_) {
      guard_.synchronizeStream(one);
    }
  }
  [[nodiscard]] std::int64_t time_of(Event event) const override {
    constexpr double kNanosecondsPerMillisecond = 1e6;
    const double since = start_.elapsedTime(events_[static_cast<std::size_t>(event.value)]);
    return start_time_ + static_cast<std::int64_t>(since * kNanosecondsPerMillisecond);
  }
  [[nodiscard]] std::unique_ptr<StepScope> begin_step() override {
    next_ = 0;
    c10::getDeviceAllocator(place_.type())->resetPeakStats(place_.index());
    return std::make_unique<OnDevice>(guard_, stream(StreamId(0)));
  }
  [[nodiscard]] RankMemory memory_use() const override {
    const auto stats = c10::getDeviceAllocator(place_.type())->getDeviceStats(place_.index());
    return {.peak = stats.allocated_bytes[0].peak};
  }

 private:
  /// Restores the thread's device, stream and autograd setting. Within the scope a backward runs on
  /// this thread; otherwise it would wake up, and wait for, a thread of LibTorch that all ranks on
  /// the device share.
  class OnDevice final : public StepScope {
   public:
    OnDevice(const VirtualGuardImpl& guard, const c10::Stream& stream)
        : guard_(guard),
          device_(guard.exchangeDevice(stream.device())),
          stream_(guard.exchangeStream(stream)),
          had_threads_(c10::AutogradState::get_tls_state().get_multithreading_enabled()) {
      c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
    }
    ~OnDevice() override {
      c10::AutogradState::get_tls_state().set_multithreading_enabled(had_threads_);
      (void)guard_.exchangeStream(stream_);
      guard_.setDevice(device_);
    }
    OnDevice(const OnDevice&) = delete;
    OnDevice& operator=(const OnDevice&) = delete;

   private:
    VirtualGuardImpl guard_;
    c10::Device device_;
    c10::Stream stream_;
    bool had_threads_;  ///< of autograd
  };

  const c10::Stream& stream(StreamId id) {
    while (streams_.size() <= id.index()) {
      streams_.push_back(guard_.getNewStream(place_));
    }
    return streams_[id.index()];
  }

  c10::Device place_;
  VirtualGuardImpl guard_;
  std::vector<c10::Stream> streams_;  ///< by number
  StreamPassing passing_{place_};
  c10::Event start_{place_.type(), c10::EventFlag::BACKEND_DEFAULT};
  std::int64_t start_time_ = 0;
  std::vector<c10::Event> events_;  ///< of this step and longer ones before it
  std::size_t next_ = 0;
  std::exception_ptr failure_;  ///< of record()
};

}  // namespace

std::unique_ptr<Device> accelerator_device(c10::Device place) {
  return std::make_unique<Accelerator>(place);
}

}  // namespace stagecraft
