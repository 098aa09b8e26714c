/// Op: what kind of thing an instruction of a plan is. Apart from Instruction, as traces of a run
/// are read where LibTorch is not.
#pragma once

#include <cstdint>

namespace stagecraft {

enum class Op : std::uint8_t {
  Run,         ///< a stage's forward or backward of one microbatch
  Send,        ///< hands a slot's tensor to a peer
  Recv,        ///< fills a slot from a peer
  Collective,  ///< what the ranks of a group do together, with the gradients of a stage
  Free,        ///< empties a slot
  Accumulate,  ///< adds a microbatch's parameter gradients into a stage's bucket
  Vote,        ///< finite? norms? the commit point of the step
  Update,      ///< the optimizer on a stage's bucket
  Regroup,     ///< makes one tensor of rows of others, for a stage of another microbatch size
};

}  // namespace stagecraft
