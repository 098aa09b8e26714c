#include "stagecraft/scheduler/dag/build.h"

#include <algorithm>
#include <map>
#include <utility>

namespace stagecraft {
namespace {

class Builder {
 public:
  Builder(DagSource source, int microbatches, bool training) {
    dag_.source = std::move(source);
    dag_.microbatches = microbatches;
    dag_.training = training;
  }

  TrainingDag build() {
    add_compute(DagKind::Forward, forward_);
    if (dag_.training) {
      add_compute(DagKind::Backward, backward_);
    }
    for (int s = 0; s < graph().size(); ++s) {
      connect_chunks(StageId(s));
    }
    for (const DagTensor& tensor : dag_.source.tensors) {
      connect(tensor);
    }
    if (dag_.training) {
      add_updates();
    } else {
      dag_.buckets = dag_.source.buckets;
    }
    return std::move(dag_);
  }

 private:
  /// The first node of each chunk of each stage; its microbatches follow.
  using FirstNodes = std::vector<std::vector<int>>;

  [[nodiscard]] const StageGraph& graph() const { return dag_.source.graph; }
  [[nodiscard]] int count(StageId s) const { return graph().microbatches_of(s, dag_.microbatches); }
  [[nodiscard]] int first_microbatch(StageId s) const { return graph().replica_of(s) * count(s); }
  [[nodiscard]] int chunks(StageId s) const {
    return static_cast<int>(dag_.source.chunks[s.index()].size());
  }

  void add_compute(DagKind kind, FirstNodes& first) {
    for (int s = 0; s < graph().size(); ++s) {
      const StageId stage(s);
      auto& of_stage = first.emplace_back();
      for (int c = 0; c < chunks(stage); ++c) {
        of_stage.push_back(dag_.size());
        for (int m = 0; m < count(stage); ++m) {
          dag_.add({.kind = kind,
                    .stage = stage,
                    .chunk = c,
                    .microbatch = Microbatch(first_microbatch(stage) + m)});
        }
      }
    }
  }

  [[nodiscard]] int forward(StageId s, int chunk, int m) const {
    return forward_[s.index()][static_cast<std::size_t>(chunk)] + m;
  }
  [[nodiscard]] int backward(StageId s, int chunk, int m) const {
    return backward_[s.index()][static_cast<std::size_t>(chunk)] + m;
  }
  [[nodiscard]] bool has_backward(StageId s) const {
    return dag_.training && graph().has_backward(s);
  }

  /// Connects the chunks of a stage: each with those that it reads, and with its predecessor, so
  /// that they keep their order.
  void connect_chunks(StageId s) {
    for (int c = 0; c < chunks(s); ++c) {
      const std::vector<int>& reads =
          dag_.source.chunks[s.index()][static_cast<std::size_t>(c)].reads;
      const bool reads_last = std::ranges::find(reads, c - 1) != reads.end();
      for (int m = 0; m < count(s); ++m) {
        for (const int from : reads) {
          dag_.connect(forward(s, from, m), forward(s, c, m));
        }
        if (c > 0 && !reads_last) {
          dag_.connect(forward(s, c - 1, m), forward(s, c, m), /*data=*/false);
        }
        if (has_backward(s)) {
          for (const int from : reads) {
            dag_.connect(backward(s, c, m), backward(s, from, m));
          }
          dag_.connect(forward(s, c, m), backward(s, c, m));
        }
        if (dag_.training && c > 0 && !(has_backward(s) && reads_last)) {
          dag_.connect(backward(s, c, m), backward(s, c - 1, m), /*data=*/false);
        }
      }
    }
  }

  /// Connects two stages by a tensor and its gradient; microbatch by microbatch, or those that
  /// share samples if the sizes of the stages differ.
  void connect(const DagTensor& tensor) {
    const int size = graph().microbatch_size(tensor.from);
    const int other = graph().microbatch_size(tensor.to);
    for (int m = 0; m < count(tensor.from); ++m) {
      const auto [begin, end] = overlapping(Microbatch(m), size, other);
      for (int reader = begin; reader < end; ++reader) {
        std::optional<MicrobatchRange> part;
        if (size != other) {
          part = shared(in_step(Microbatch(first_microbatch(tensor.from) + m), size),
                        in_step(Microbatch(first_microbatch(tensor.to) + reader), other));
        }
        dag_.edges.push_back({.from = forward(tensor.from, tensor.from_chunk, m),
                              .to = forward(tensor.to, tensor.to_chunk, reader),
                              .tensor = tensor.activation,
                              .part = part});
        if (dag_.training && tensor.owes_gradient) {
          dag_.edges.push_back({.from = backward(tensor.to, tensor.to_chunk, reader),
                                .to = backward(tensor.from, tensor.gradient_chunk, m),
                                .tensor = tensor.gradient,
                                .part = part});
        }
      }
    }
  }

  /// Adds a bucket for each stage that trains and its copies, and an update for each of them.
  void add_updates() {
    std::map<StageId, std::size_t> bucket_of;
    for (int s = 0; s < graph().size(); ++s) {
      const StageId stage(s);
      DagBucket bucket{.stages = {}, .first_chunk = 0, .chunks = chunks(stage)};
      for (const DagChunk& chunk : dag_.source.chunks[stage.index()]) {
        bucket.bytes += chunk.parameter_bytes;
      }
      if (graph().replica_of(stage) == 0 && bucket.bytes > 0) {
        bucket_of[stage] = dag_.buckets.size();
        dag_.buckets.push_back(std::move(bucket));
      }
    }
    for (const auto& [first, second] : graph().replica_pairs()) {
      if (const auto found = bucket_of.find(StageId(first)); found != bucket_of.end()) {
        bucket_of[StageId(second)] = found->second;
      }
    }
    for (const auto& [stage, bucket] : bucket_of) {
      dag_.buckets[bucket].stages.push_back(stage);
      const int update =
          dag_.add({.kind = DagKind::Update, .stage = stage, .bucket = static_cast<int>(bucket)});
      for (int c = 0; c < chunks(stage); ++c) {
        for (int m = 0; m < count(stage); ++m) {
          dag_.connect(backward(stage, c, m), update, /*data=*/false);
        }
      }
    }
  }

  TrainingDag dag_;
  FirstNodes forward_, backward_;
};

}  // namespace

TrainingDag build_dag(DagSource source, int microbatches, bool training) {
  return Builder(std::move(source), microbatches, training).build();
}

}  // namespace stagecraft
