#include "stagecraft/compiler/chunks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

class ChunkCut {
 public:
  ChunkCut(StageProgram& stage, const std::vector<std::size_t>& borders) : stage_(stage) {
    SC_CHECK(stage.chunks.size() == 1, "a stage is cut into chunks once");
    std::vector<Node>& nodes = stage.chunks.front().nodes;
    std::size_t begin = 0;
    for (const std::size_t end : borders) {
      add_chunk(nodes, begin, end);
      begin = end;
    }
    add_chunk(nodes, begin, nodes.size());
  }

  void run() {
    check_writes();
    check_hooks();
    connect();
    stage_.chunks = std::move(chunks_);
  }

 private:
  void add_chunk(std::vector<Node>& nodes, std::size_t begin, std::size_t end) {
    if (end <= begin || end > nodes.size()) {
      throw Error(Errc::CompilePartition,
                  fmt::format("stage \"{}\" has {} operators, and a chunk from {} to {} has none: "
                              "give ascending positions between its operators",
                              stage_.name,
                              nodes.size(),
                              begin,
                              end));
    }
    Chunk chunk;
    for (std::size_t n = begin; n < end; ++n) {
      chunk.nodes.push_back(nodes[n]);
    }
    chunks_.push_back(std::move(chunk));
  }

  /// Buffers are the stage's, and every chunk has them as they are.
  void check_writes() const {
    std::map<int, std::set<std::size_t>> touched;  // alias set -> chunks
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      for (const Node& node : chunks_[c].nodes) {
        std::vector<ValueId> values = reads_of(node);
        values.insert(values.end(), node.results.begin(), node.results.end());
        for (const ValueId v : values) {
          if (v != kNoValue && stage_.at(v).kind != ValueKind::Buffer) {
            touched[stage_.at(v).alias_set].insert(c);
          }
        }
      }
    }
    for (const Chunk& chunk : chunks_) {
      for (const Node& node : chunk.nodes) {
        for (const ValueId written : node.writes) {
          const Value& value = stage_.at(written);
          if (value.kind != ValueKind::Buffer && touched[value.alias_set].size() > 1) {
            throw Error(
                Errc::CompilePartition,
                fmt::format("{} writes {} in place, and another chunk of stage \"{}\" uses "
                            "its memory: put the border elsewhere, or use the operator that "
                            "returns a new tensor",
                            operator_name(node),
                            value_name(value, written),
                            stage_.name));
          }
        }
      }
    }
  }

  void check_hooks() const {
    for (const StageParameter& parameter : stage_.parameters) {
      if (stage_.at(parameter.value).hooks == kNoAttachment) {
        continue;
      }
      const auto reads = [&](const Chunk& chunk) {
        return std::ranges::any_of(chunk.nodes, [&](const Node& node) {
          const std::vector<ValueId> values = reads_of(node);
          return std::ranges::find(values, parameter.value) != values.end();
        });
      };
      if (std::ranges::count_if(chunks_, reads) > 1) {
        throw Error(Errc::CompilePartition,
                    fmt::format("several chunks of stage \"{}\" read the parameter {}, whose hooks "
                                "would see a part of its gradient each: put the border elsewhere",
                                stage_.name,
                                parameter.name));
      }
    }
  }

  void connect() {
    std::map<ValueId, std::size_t> made_in;
    std::set<ValueId> given;
    for (const StageInput& input : stage_.inputs) {
      given.insert(input.value);
    }
    std::map<ValueId, std::set<std::size_t>> readers;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      std::set<ValueId> inputs;
      for (const Node& node : chunks_[c].nodes) {
        for (const ValueId read : reads_of(node)) {
          const auto maker = made_in.find(read);
          const bool from_before = maker != made_in.end() && maker->second != c;
          if (read != kNoValue && (given.contains(read) || from_before) &&
              inputs.insert(read).second) {
            chunks_[c].inputs.push_back(read);
            readers[read].insert(c);
          }
        }
        for (const ValueId result : node.results) {
          made_in.try_emplace(result, c);
        }
      }
    }
    for (const StageOutput& output : stage_.outputs) {
      chunks_[made_in.at(output.value)].outputs.push_back(output.value);
      readers.erase(output.value);
    }
    for (const auto& [value, chunks] : readers) {
      if (!given.contains(value)) {
        chunks_[made_in.at(value)].outputs.push_back(value);
      }
    }
  }

  StageProgram& stage_;
  std::vector<Chunk> chunks_;
};

}  // namespace

void cut_into_chunks(StageProgram& stage, const std::vector<std::size_t>& borders) {
  ChunkCut(stage, borders).run();
}

}  // namespace stagecraft
