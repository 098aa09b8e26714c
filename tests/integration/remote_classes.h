/// Holds classes whose objects live on ranks, for remote_actors_test.cc and the workers it starts.
#pragma once

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <ATen/ops/sum.h>

#include "stagecraft/actors/remote/host/actor_type.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tests {

struct Match {
  std::int64_t row = 0;
  std::string name;
  at::Tensor cost;
};

template <class V>
decltype(auto) visit_fields(Match& m, V&& v) {
  return v(m.row, m.name, m.cost);
}

/// Keeps a list of what it was told, and makes and takes values of all kinds.
class Notebook {
 public:
  explicit Notebook(std::string title) : title_(std::move(title)) {
    if (title_ == "broken") {
      throw std::invalid_argument("no title");
    }
  }

  std::int64_t note(std::int64_t number) {
    notes_.push_back(number);
    return static_cast<std::int64_t>(notes_.size());
  }
  [[nodiscard]] std::vector<std::int64_t> notes() const { return notes_; }
  [[nodiscard]] std::string title() const { return title_; }
  void clear() { notes_.clear(); }
  /// Returns `size` floats of this value.
  at::Tensor tensor(std::int64_t size, double value) { return at::full({size}, value, at::kFloat); }
  at::Tensor plus(const at::Tensor& tensor, double more) { return tensor.add(more); }
  double sum(const at::Tensor& tensor) { return tensor.sum().item<double>(); }
  Match match(Match given) {
    ++given.row;
    return given;
  }
  std::string text(std::int64_t size) { return std::string(static_cast<std::size_t>(size), 'x'); }
  std::int64_t process() { return getpid(); }
  at::Tensor keep() { return kept_ = at::full({100'000}, 1.0, at::kFloat); }
  /// Returns how many hold the memory of keep()'s tensor, this object among them.
  std::int64_t uses() { return static_cast<std::int64_t>(kept_.storage().use_count()); }
  int fail(const std::string& how) {
    if (how == "error") {
      throw Error(Errc::UsageFile, "there is no file 'nowhere'");
    }
    if (how == "number") {
      throw 3;
    }
    throw std::out_of_range("page 7");
  }

  using Remote = stagecraft::Remote<Notebook(std::string),
                                    &Notebook::note,
                                    &Notebook::notes,
                                    &Notebook::title,
                                    &Notebook::clear,
                                    &Notebook::tensor,
                                    &Notebook::plus,
                                    &Notebook::sum,
                                    &Notebook::match,
                                    &Notebook::text,
                                    &Notebook::process,
                                    &Notebook::keep,
                                    &Notebook::uses,
                                    &Notebook::fail>;

 private:
  const std::string title_;
  std::vector<std::int64_t> notes_;
  at::Tensor kept_;
};

/// Has methods that wait for one another.
class Gate {
 public:
  Gate() = default;
  /// Waits until open() was called. A test calls it before it ends.
  int pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_open_; });
    return ++passed_;
  }
  void open() {
    const std::scoped_lock lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  /// Waits until so many calls are in it.
  int meet(int others) {
    std::unique_lock lock(mutex_);
    ++inside_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return inside_ >= others; });
    return inside_;
  }
  using Remote = stagecraft::Remote<Gate(), &Gate::pass, &Gate::open, &Gate::meet>;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
  int passed_ = 0;
  int inside_ = 0;
};

/// Is known to no worker program.
class Stranger {
 public:
  int nothing() { return 0; }
  using Remote = stagecraft::Remote<Stranger(), &Stranger::nothing>;
};

}  // namespace stagecraft::tests
