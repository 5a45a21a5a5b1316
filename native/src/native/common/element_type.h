// What a matrix operand's elements are.
#pragma once

namespace treeward {

enum class ElementType { float32, bfloat16 };  // bfloat16 as its 16 bits

}  // namespace treeward
