import { rpcTimeout } from "@devmesh/contracts/rpc-bridge";
import { NumberInput } from "@mantine/core";
import { useState } from "react";

/** How long a device has to answer a call. */
interface RpcTimeoutInputProps {
  /** In milliseconds. */
  readonly value: number;
  readonly onChange: (ms: number) => void;
}

/** Asks how long a device has to answer; the usual time is taken where nothing is left in the field. */
export function RpcTimeoutInput({ value, onChange }: RpcTimeoutInputProps) {
  const [emptied, setEmptied] = useState(false);
  return (
    <NumberInput
      label="Time to answer, in ms"
      value={emptied ? "" : value}
      min={rpcTimeout.min}
      max={rpcTimeout.max}
      step={1_000}
      allowDecimal={false}
      allowNegative={false}
      clampBehavior="blur"
      onChange={(typed) => {
        setEmptied(typed === "");
        onChange(typed === "" ? rpcTimeout.default : Number(typed));
      }}
      onBlur={() => setEmptied(false)}
      w={180}
    />
  );
}
