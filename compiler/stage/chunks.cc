#include "stagecraft/compiler/stage/chunks.h"

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

  /// Buffers belong to the stage, and every chunk uses them directly. For other written memory one
  /// value may cross borders: the chunk that writes it gets a copy and passes that on.
  void check_writes() const {
    std::map<int, Memory> memories = memories_by_alias_set();
    for (const Chunk& chunk : chunks_) {
      for (const Node& node : chunk.nodes) {
        for (const ValueId written : node.writes) {
          const Memory& memory = memories[stage_.at(written).alias_set];
          const bool is_buffer = stage_.at(written).kind == ValueKind::Buffer;
          const std::size_t most = is_buffer ? 0 : 1;
          if (memory.chunks.size() > 1 && (memory.everybodys || memory.crossing.size() > most)) {
            throw Error(
                Errc::CompilePartition,
                fmt::format("{} writes {} in place, and another chunk of stage \"{}\" uses "
                            "its memory: put the border elsewhere, or use the operator that "
                            "returns a new tensor",
                            operator_name(node),
                            value_name(stage_.at(written), written),
                            stage_.name));
          }
        }
      }
    }
  }

  /// Memory says which chunks use the memory of an alias set.
  struct Memory {
    std::set<std::size_t> chunks;
    std::set<ValueId> crossing;  ///< values that a chunk other than their maker uses
    bool everybodys = false;     ///< a constant's or parameter's, which no chunk copies
  };

  [[nodiscard]] std::map<int, Memory> memories_by_alias_set() const {
    std::map<int, Memory> memories;
    std::map<ValueId, std::size_t> made_in;
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      for (const Node& node : chunks_[c].nodes) {
        for (const ValueId read : reads_of(node)) {
          if (read == kNoValue || stage_.at(read).kind == ValueKind::Buffer) {
            continue;
          }
          Memory& memory = memories[stage_.at(read).alias_set];
          memory.chunks.insert(c);
          const auto maker = made_in.find(read);
          if (is_everybodys(stage_.at(read).kind)) {
            memory.everybodys = true;
          } else if (maker == made_in.end() || maker->second != c) {
            memory.crossing.insert(read);
          }
        }
        for (const ValueId result : node.results) {
          if (result != kNoValue && stage_.at(result).kind != ValueKind::Buffer) {
            made_in.try_emplace(result, c);
            memories[stage_.at(result).alias_set].chunks.insert(c);
          }
        }
      }
    }
    return memories;
  }

  static bool is_everybodys(ValueKind kind) {
    return kind == ValueKind::Constant || kind == ValueKind::Parameter;
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

  /// Finds the inputs and outputs of each chunk. A chunk that writes an input counts as its new
  /// maker.
  void connect() {
    std::map<ValueId, std::size_t> made_in;  // the last chunk that made it
    std::set<ValueId> given;
    for (const StageInput& input : stage_.inputs) {
      given.insert(input.value);
    }
    for (std::size_t c = 0; c < chunks_.size(); ++c) {
      Chunk& chunk = chunks_[c];
      std::set<ValueId> own, inputs;
      std::set<int> written;
      for (const Node& node : chunk.nodes) {
        for (const ValueId read : reads_of(node)) {
          const auto maker = made_in.find(read);
          const bool from_outside = maker != made_in.end() || given.contains(read);
          if (from_outside && !own.contains(read) && inputs.insert(read).second) {
            chunk.inputs.push_back(read);
            if (maker != made_in.end()) {
              passed_on_[maker->second].insert(read);
            }
          }
        }
        for (const ValueId result : node.results) {
          own.insert(result);
        }
        for (const ValueId value : node.writes) {
          written.insert(stage_.at(value).alias_set);
        }
      }
      for (const ValueId value : own) {
        made_in[value] = c;
      }
      for (const ValueId value : inputs) {
        if (written.contains(stage_.at(value).alias_set)) {
          made_in[value] = c;
        }
      }
    }
    for (const StageOutput& output : stage_.outputs) {
      const std::size_t maker = made_in.at(output.value);
      chunks_[maker].outputs.push_back(output.value);
      passed_on_[maker].erase(output.value);
    }
    for (const auto& [maker, values] : passed_on_) {
      chunks_[maker].outputs.insert(chunks_[maker].outputs.end(), values.begin(), values.end());
    }
  }

  std::map<std::size_t, std::set<ValueId>> passed_on_;  // by maker: values that others read
  StageProgram& stage_;
  std::vector<Chunk> chunks_;
};

}  // namespace

void cut_into_chunks(StageProgram& stage, const std::vector<std::size_t>& borders) {
  ChunkCut(stage, borders).run();
}

}  // namespace stagecraft
