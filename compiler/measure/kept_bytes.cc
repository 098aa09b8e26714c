#include "stagecraft/compiler/measure/kept_bytes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <c10/core/Storage.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <torch/csrc/autograd/variable.h>

#include "stagecraft/compiler/libtorch/memory_meter.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

}  // namespace

KeptBytes::KeptBytes(const Graph& graph) : graph_(graph), kept_by_others_(graph.nodes.size()) {
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId id : graph.nodes[n].results) {
      if (id != kNoValue) {
        const Value& value = graph.at(id);
        makers_.emplace(value.alias_set, Maker{n, static_cast<double>(bytes_of(value))});
      }
    }
  }
}

// The memory that a node's graph holds is found by releasing everything else. The node gets values
// made for it, and those that are alive afterwards are held by its graph.
KeptBytes::Bytes KeptBytes::measure(const SingleOperator& node,
                                    const Tensors& leaves,
                                    std::size_t number) {
  using Weak = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct Watched {
    int alias_set;
    double bytes;
    Weak storage;
  };
  Bytes bytes;
  std::vector<Watched> watched;
  const auto watch = [&](ValueId id, const at::Tensor& tensor) {
    if (graph_.at(id).kind == ValueKind::Computed) {
      watched.push_back({graph_.at(id).alias_set,
                         static_cast<double>(tensor.storage().nbytes()),
                         tensor.storage().getWeakStorageImpl()});
    }
  };
  const std::vector<ValueId> inputs = node.inputs();
  const auto meter = std::make_shared<MemoryMeter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
  std::vector<std::shared_ptr<torch::autograd::Node>> graph;
  {
    Tensors arguments;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      // Do not pass the leaf itself, since its accumulator would hold it. Values of the batch need
      // no copy.
      const ValueId id = inputs[i];
      const bool computed = graph_.at(id).kind == ValueKind::Computed;
      arguments.push_back(computed ? leaves[i].clone() : leaves[i]);
      watch(id, arguments.back());
    }
    meter->reset_peak();
    const std::int64_t before = meter->live();
    const Tensors results = node.run(arguments);
    bytes.transient = static_cast<double>(meter->peak() - before);
    const std::vector<ValueId> ids = node.results();
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].defined() && results[i].requires_grad()) {
        graph.push_back(results[i].grad_fn());
        watch(ids[i], results[i]);
      }
    }
  }
  bytes.kept = static_cast<double>(meter->live());
  std::set<c10::StorageImpl*> others, seen;  // others: parameters, constants and the batch
  for (const Tensors* tensors : {&node.parameters(), &graph_.constants, &leaves}) {
    for (const at::Tensor& tensor : *tensors) {
      if (tensor.has_storage()) {
        others.insert(tensor.storage().unsafeGetStorageImpl());
      }
    }
  }
  std::set<int> newly;
  for (const Watched& value : watched) {
    const auto held = value.storage.lock();
    if (!held || !seen.insert(held.get()).second) {
      continue;
    }
    if (others.contains(held.get())) {
      counted_.insert(value.alias_set);  // a view of memory that is not counted
    } else if (counted_.contains(value.alias_set) || !newly.insert(value.alias_set).second) {
      bytes.kept -= value.bytes;
    } else if (const auto maker = makers_.find(value.alias_set);
               maker != makers_.end() && maker->second.node != number) {
      kept_by_others_[maker->second.node] += maker->second.bytes;
      bytes.kept -= value.bytes;  // the bytes of the copy made to measure it
    }
  }
  counted_.merge(newly);
  bytes.kept = std::max(0.0, bytes.kept);
  return bytes;
}

}  // namespace stagecraft
