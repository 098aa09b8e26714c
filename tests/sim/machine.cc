#include "stagecraft/tests/sim/machine.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

namespace stagecraft::sim {

std::string Stream::name() const {
  return fmt::format("sim:{} stream {}", device, number);
}

Machine& Machine::the() {
  static Machine* const machine = new Machine();
  return *machine;
}

void Machine::start(int count) {
  const Lock lock(mutex_);
  streams_.resize(static_cast<std::size_t>(count));
  handed_out_.resize(streams_.size());
  memories_.resize(streams_.size());
  for (int device = 0; device < count; ++device) {
    streams_[static_cast<std::size_t>(device)].resize(1 + 2 * kPool);
    add_stream(device, 0);
  }
}

void Machine::restart(Options begun) {
  const Lock lock(mutex_);
  options_ = begun;
  std::ranges::fill(handed_out_, std::array{0, 0});
  for (const auto& of_device : streams_) {
    for (const auto& stream : of_device) {
      if (stream) {
        stream->waits = stream->kept = 0;
        seed(*stream);
      }
    }
  }
  issuers_.clear();
  calls_.clear();
  failure_ = nullptr;
  (void)detector_.take_reports();
}

void Machine::seed(Stream& stream) const {
  constexpr unsigned kPrime = 7919;  // keeps the streams' delays apart
  stream.random.seed(options_.seed * kPrime + static_cast<unsigned>(stream.in_detector));
}

Stream& Machine::add_stream(int device, std::size_t number) {
  auto made = std::make_unique<Stream>();
  made->device = device;
  made->number = static_cast<int>(number);
  made->in_detector = detector_.add_stream(made->name());
  seed(*made);
  Stream& stream = *(streams_[static_cast<std::size_t>(device)][number] = std::move(made));
  std::thread([this, &stream] { work(stream); }).detach();
  return stream;
}

Stream& Machine::next_stream(int device, bool high) {
  const Lock lock(mutex_);
  const auto d = static_cast<std::size_t>(device);
  int& handed_out = handed_out_[d].at(high ? 1 : 0);
  const auto number = static_cast<std::size_t>((high ? 1 + kPool : 1) + handed_out++ % kPool);
  Stream* const found = streams_[d][number].get();
  return found != nullptr ? *found : add_stream(device, number);
}

Stream& Machine::stream(int device, std::int64_t number) {
  const Lock lock(mutex_);
  return *streams_.at(static_cast<std::size_t>(device)).at(static_cast<std::size_t>(number));
}

void Machine::work(Stream& stream) {
  at::set_num_threads(1);
  Lock lock(mutex_);
  for (;;) {
    stream.has_work.wait(lock, [&] { return !stream.kernels.empty(); });
    Kernel kernel = std::move(stream.kernels.front().kernel);
    lock.unlock();
    if (options_.most_delay.count() > 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(
          stream.random() % static_cast<unsigned>(options_.most_delay.count() + 1)));
    }
    std::exception_ptr thrown;
    try {
      kernel();
    } catch (...) {
      thrown = std::current_exception();
    }
    kernel = nullptr;  // what it holds may need the lock
    lock.lock();
    failure_ = failure_ ? failure_ : thrown;
    stream.kernels.pop_front();
    ++stream.done;
    ++ended_;
    if (hosts_waiting_ > 0) {
      done_.notify_all();
    }
  }
}

/// Requires: the kernel does not lock the machine if it runs at once.
void Machine::give(Stream& stream, std::string name, Kernel kernel) {
  if (options_.at_once) {
    kernel();
    return;
  }
  stream.kernels.push_back({std::move(name), std::move(kernel)});
  ++stream.given;
  stream.has_work.notify_one();
}

void Machine::launch(Stream& stream,
                     const std::string& name,
                     const std::vector<Access>& accesses,
                     Kernel kernel) {
  std::vector<Detector::Access> seen;
  std::string call = name;
  for (const Access& access : accesses) {
    call += (access.writes ? " w" : " r") + std::to_string(access.bytes);
    seen.push_back(
        {reinterpret_cast<std::uintptr_t>(on_host(access.data)), access.bytes, access.writes});
  }
  Lock lock(mutex_);
  issuers_.insert(std::this_thread::get_id());
  note_call(stream.name(), std::move(call));
  detector_.issue(stream.in_detector, name, seen);
  if (options_.at_once) {
    lock.unlock();
    kernel();
    return;
  }
  give(stream, name, std::move(kernel));
}

std::shared_ptr<Mark> Machine::record(Stream& stream) {
  const Lock lock(mutex_);
  note_call(stream.name(), "record");
  const std::shared_ptr<Mark> mark = mark_end_locked(stream);
  mark->clock = detector_.record(stream.in_detector);
  return mark;
}

/// Returns a mark that is done after what the stream was given. The detector does not know it.
std::shared_ptr<Mark> Machine::mark_end_locked(Stream& stream) {
  auto mark = std::make_shared<Mark>();
  mark->of = stream.name();
  const auto finish = [mark] {
    mark->time = std::chrono::steady_clock::now();
    mark->is_done = true;
  };
  if (options_.at_once) {
    finish();
    return mark;
  }
  give(stream, "record", [this, finish] {
    const Lock lock(mutex_);
    finish();
    done_.notify_all();
  });
  return mark;
}

void Machine::wait(Stream& stream, const std::shared_ptr<Mark>& mark) {
  const Lock lock(mutex_);
  if (options_.left_out_wait == StreamCall{stream.device, stream.number, stream.waits++}) {
    return;
  }
  note_call(stream.name(), "wait for " + mark->of);
  detector_.wait(stream.in_detector, mark->clock);
  if (options_.at_once) {
    return;
  }
  give(stream, "wait for " + mark->of, [this, mark] {
    Lock waiting(mutex_);
    done_.wait(waiting, [&] { return mark->is_done; });
  });
}

void Machine::follow(Stream& stream, const Mark& mark) {
  const Lock lock(mutex_);
  detector_.wait(stream.in_detector, mark.clock);
}

bool Machine::is_done(const Mark& mark) {
  const Lock lock(mutex_);
  if (mark.is_done) {
    detector_.wait_on_host(mark.clock);
  }
  return mark.is_done;
}

bool Machine::is_idle(const Stream& stream) {
  const Lock lock(mutex_);
  const bool is_over = stream.done == stream.given;
  if (is_over) {
    detector_.wait_on_host(detector_.record(stream.in_detector));
  }
  return is_over;
}

void Machine::synchronize(const Mark& mark) {
  Lock lock(mutex_);
  note_call(mark.of, kHostWaits);
  wait_on_host(lock, [&] { return mark.is_done; });
  detector_.wait_on_host(mark.clock);
}

void Machine::synchronize(Stream& stream) {
  Lock lock(mutex_);
  synchronize_locked(lock, stream);
}

void Machine::synchronize(int device) {
  Lock lock(mutex_);
  std::vector<Stream*> streams;  // others may come while this waits
  for (const auto& stream : streams_[static_cast<std::size_t>(device)]) {
    if (stream) {
      streams.push_back(stream.get());
    }
  }
  for (Stream* const stream : streams) {
    synchronize_locked(lock, *stream);
  }
}

void Machine::synchronize_locked(Lock& lock, Stream& stream) {
  note_call(stream.name(), kHostWaits);
  const std::uint64_t given = stream.given;
  const Detector::Clock clock = detector_.record(stream.in_detector);
  wait_on_host(lock, [&] { return stream.done >= given; });
  detector_.wait_on_host(clock);
}

void Machine::wait_on_host(Lock& lock, const std::function<bool()>& is_over) {
  ++host_waits_;
  ++hosts_waiting_;
  std::uint64_t ended = ended_;
  while (!done_.wait_for(lock, options_.standstill, is_over)) {
    if (ended == std::exchange(ended, ended_)) {
      --hosts_waiting_;
      throw std::runtime_error("the simulated devices stand still" + standing());
    }
  }
  --hosts_waiting_;
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

std::string Machine::standing() const {
  std::string text;
  for (const auto& device : streams_) {
    for (const auto& stream : device) {
      if (stream && !stream->kernels.empty()) {
        text += "; " + stream->name() + " runs " + stream->kernels.front().name + ", behind it " +
                std::to_string(stream->kernels.size() - 1);
      }
    }
  }
  return text;
}

void* Machine::allocate(Stream& stream, std::size_t bytes) {
  const Lock lock(mutex_);
  Memory& memory = memories_[static_cast<std::size_t>(stream.device)];
  for (Block* const block : memory.take_over()) {
    detector_.forget_uses(reinterpret_cast<std::uintptr_t>(block->data));
    if (options_.poison) {
      std::memset(block->data, 0xff, block->bytes);
    }
    memory.keep(*block);
  }
  const Block& block = memory.take(stream, bytes, options_.memory);
  detector_.allocate(reinterpret_cast<std::uintptr_t>(block.data), block.bytes, stream.in_detector);
  return block.data;
}

void Machine::free(void* data) {
  const Lock lock(mutex_);
  for (Memory& memory : memories_) {
    if (Block* const block = memory.find(data)) {
      free_in(memory, *block);
    }
  }
}

/// The next user of a block is on the block's stream. Other streams that used it have to be done.
void Machine::free_in(Memory& memory, Block& block) {
  std::vector<int> in_detector{block.stream->in_detector};
  std::vector<std::shared_ptr<Mark>> marks;
  for (Stream* const stream : block.also_used_on) {
    in_detector.push_back(stream->in_detector);
    marks.push_back(mark_end_locked(*stream));
  }
  detector_.release(reinterpret_cast<std::uintptr_t>(block.data), in_detector);
  memory.end_use(block);
  if (!marks.empty()) {
    marks.push_back(mark_end_locked(*block.stream));
    block.also_used_on.clear();
    memory.keep_after(block, std::move(marks));
    return;
  }
  if (options_.poison) {
    give(*block.stream, "poison", [&block] { std::memset(block.data, 0xff, block.bytes); });
  }
  memory.keep(block);
}

void Machine::use_on(void* data, Stream& stream) {
  const Lock lock(mutex_);
  Block* const block = memories_[static_cast<std::size_t>(stream.device)].find(data);
  TORCH_CHECK(block != nullptr, "this is no memory of sim:", stream.device);
  if (block->stream != &stream &&
      options_.left_out_keep != StreamCall{stream.device, stream.number, stream.kept++}) {
    block->also_used_on.insert(&stream);
  }
}

std::vector<StreamCall> Machine::waited() {
  return numbered(&Stream::waits);
}

std::vector<StreamCall> Machine::kept() {
  return numbered(&Stream::kept);
}

std::vector<StreamCall> Machine::numbered(int Stream::*count) {
  const Lock lock(mutex_);
  std::vector<StreamCall> all;
  for (const auto& of_device : streams_) {
    for (const auto& stream : of_device) {
      for (int number = 0; stream && number < (*stream).*count; ++number) {
        all.push_back({stream->device, stream->number, number});
      }
    }
  }
  return all;
}

Machine::Calls Machine::calls() {
  const Lock lock(mutex_);
  return calls_;
}

void Machine::note_call(const std::string& stream, std::string call) {
  if (options_.keeps_calls) {
    calls_[stream].push_back(std::move(call));
  }
}

std::int64_t Machine::bytes_in_use(int device) {
  const Lock lock(mutex_);
  return memories_[static_cast<std::size_t>(device)].in_use();
}

std::int64_t Machine::peak_bytes(int device) {
  const Lock lock(mutex_);
  return memories_[static_cast<std::size_t>(device)].peak();
}

void Machine::reset_peak(int device) {
  const Lock lock(mutex_);
  memories_[static_cast<std::size_t>(device)].reset_peak();
}

std::int64_t Machine::host_waits() {
  const Lock lock(mutex_);
  return host_waits_;
}

std::size_t Machine::issuing_threads() {
  const Lock lock(mutex_);
  return issuers_.size();
}

std::vector<std::string> Machine::take_reports() {
  const Lock lock(mutex_);
  return detector_.take_reports();
}

}  // namespace stagecraft::sim
